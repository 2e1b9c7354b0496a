#include "cli/search_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

constexpr double kMostRangeValues = 10'000;

const Axis& axis_of(const std::string& path, const std::string& key) {
  std::string name = key;
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<std::string> known;
  for (const Axis& axis : axes()) {
    if (axis.name == name) return axis;
    known.push_back(axis.name);
  }
  const std::string near = nearest_name(name, known);
  throw InputError(fmt::format("{}: /{}: no flag of that name{}", path, key,
                               near.empty() ? "; the keys are flags of `simulate`, see --help"
                                            : fmt::format("; did you mean '{}'?", near)));
}

std::string space_scalar(const nlohmann::json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  if (value.is_number()) return value.dump();
  throw InputError(fmt::format(
      "{}: accepted: a value, a list of values, or a range {{\"from\", \"to\", \"step\" or "
      "\"factor\"}}",
      where));
}

/// How many values a range has, as a number that may be beyond any integer. An end that rounding
/// has just missed belongs to it.
double range_count(double from, double to, double by, bool has_step) {
  constexpr double kSlack = 1e-6;
  return std::floor((has_step ? (to - from) / by : std::log(to / from) / std::log(by)) + kSlack) +
         1;
}

/// Whole numbers are written as such, however large.
std::string range_value(double value, bool whole) {
  return whole ? fmt::format("{:.0f}", std::round(value) + 0.0) : nlohmann::json(value).dump();
}

/// A range's values. Between whole ends they are rounded to whole numbers.
std::vector<std::string> space_range(const nlohmann::json& object, const std::string& path,
                                     const std::string& key) {
  Params params(object, path, "/" + key);
  const auto from = params.required<double>("from");
  const auto to = params.required<double>("to");
  const bool has_step = params.has("step");
  if (has_step == params.has("factor")) {
    throw params.error(has_step ? "factor" : "step", "a range has a step or a factor, one of them");
  }
  const std::string kind = has_step ? "step" : "factor";
  const bool whole = object.at("from").is_number_integer() && object.at("to").is_number_integer();
  const double by = params.required<double>(kind);
  params.finish();
  if (to < from) throw params.error("to", fmt::format("{} is below from ({})", to, from));
  if (has_step ? by <= 0 : (by <= 1 || from <= 0)) {
    throw params.error(kind, has_step ? "must be above 0" : "must be above 1, with from above 0");
  }
  const double count = range_count(from, to, by, has_step);
  // Known before any is made: rounding may merge billions of them into a few.
  if (!(count <= kMostRangeValues)) {
    throw params.error(kind, fmt::format("{} makes more than {} values from {} to {}", by,
                                         kMostRangeValues, from, to));
  }
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) {
    const double value = has_step ? from + i * by : from * std::pow(by, i);
    std::string text = range_value(value, whole);
    if (values.empty() || values.back() != text) values.push_back(std::move(text));
  }
  return values;
}

std::vector<std::string> space_values(const nlohmann::json& value, const std::string& path,
                                      const std::string& key) {
  const std::string where = fmt::format("{}: /{}", path, key);
  if (value.is_object()) return space_range(value, path, key);
  if (!value.is_array()) return {space_scalar(value, where)};
  std::vector<std::string> values;
  for (const nlohmann::json& entry : value) {
    std::string text = space_scalar(entry, where);
    if (std::find(values.begin(), values.end(), text) != values.end()) {
      throw InputError(fmt::format("{}: '{}' stands there twice", where, text));
    }
    values.push_back(std::move(text));
  }
  if (values.empty()) {
    throw InputError(fmt::format("{}: the list is empty, and so is the space", where));
  }
  return values;
}

}  // namespace

std::vector<AxisValues> read_space(const std::string& path) {
  const nlohmann::json document = read_json_file(path);
  if (!document.is_object()) {
    throw InputError(
        fmt::format("{}: a space is an object: {{\"max-num-seqs\": [64, 128]}}", path));
  }
  if (document.empty()) throw InputError(fmt::format("{}: the space is empty", path));
  std::vector<AxisValues> space;
  for (const auto& [key, value] : document.items()) {
    const Axis& axis = axis_of(path, key);
    if (axis.name == "trace") {
      throw InputError(fmt::format("{}: /{}: the trace is given with --trace", path, key));
    }
    space.push_back({&axis, space_values(value, path, key)});
  }
  check_search_axes(space);
  return join_axes({}, space);
}

std::vector<AxisValues> join_axes(const std::vector<AxisValues>& given,
                                  const std::vector<AxisValues>& space) {
  std::vector<AxisValues> all = given;
  for (const AxisValues& entry : space) {
    const auto same = [&entry](const AxisValues& other) { return other.axis == entry.axis; };
    if (std::any_of(all.begin(), all.end(), same)) {
      throw InputError(
          fmt::format("--{} is given twice: on the command line and in the space, or "
                      "there in two spellings",
                      entry.axis->name));
    }
    all.push_back(entry);
  }
  std::sort(all.begin(), all.end(),
            [](const AxisValues& a, const AxisValues& b) { return a.axis < b.axis; });
  return all;
}

void check_search_axes(const std::vector<AxisValues>& given) {
  for (const auto& [axis, values] : given) {
    if (axis->name == "request-rate") {
      throw InputError("--request-rate contradicts a search, which looks for the highest one");
    }
    if (axis->name == "max-concurrency") {
      throw InputError(
          "--max-concurrency contradicts a search: requests would wait at the client, where no "
          "latency counts it, and the rate would not be that of the engine");
    }
    if (axis->name == "time-scale") {
      throw InputError(
          "--time-scale contradicts a search, which replaces the arrivals by a random process");
    }
    if (axis->scope == Axis::Scope::kTrace && values.size() > 1) {
      throw InputError(
          fmt::format("--{}: a search takes one trace, read in one way; several make several "
                      "searches",
                      axis->name));
    }
  }
}

std::vector<std::size_t> predecessors(const std::vector<AxisValues>& axes) {
  std::size_t count = 1;
  for (const AxisValues& axis : axes) count *= axis.values.size();
  std::vector<std::size_t> result(count);
  for (std::size_t at = 0; at < count; ++at) {
    std::size_t stride = 1;
    result[at] = at;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      if (at / stride % axis->values.size() > 0) {
        result[at] = at - stride;
        break;
      }
      stride *= axis->values.size();
    }
  }
  return result;
}

}  // namespace servesim
