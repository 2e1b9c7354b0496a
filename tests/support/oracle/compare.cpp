#include "support/oracle/compare.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>

namespace servesim::oracle {

namespace {

void write(std::ostream& out, std::int64_t value) {
  out << value;
}

void write(std::ostream& out, const std::string& value) {
  out << value;
}

template <typename Name, typename Value>
void write(std::ostream& out, const std::pair<Name, Value>& named) {
  out << named.first << ':' << named.second;
}

template <typename Container>
void write_all(std::ostream& out, const Container& values) {
  out << '[';
  const char* separator = "";
  for (const auto& value : values) {
    out << separator;
    write(out, value);
    separator = " ";
  }
  out << ']';
}

void write(std::ostream& out, const std::vector<std::string>& values) {
  write_all(out, values);
}

void write(std::ostream& out, const std::vector<std::pair<std::string, std::int64_t>>& values) {
  write_all(out, values);
}

void write(std::ostream& out, const std::map<std::string, std::int64_t>& values) {
  write_all(out, values);
}

/// Calls `visit(name, member)` for every field, in the order of the log lines.
template <typename Visitor>
void for_each_field(const Visitor& visit) {
  visit("step", &LoggedStep::step);
  visit("t_ns", &LoggedStep::t_ns);
  visit("scheduled", &LoggedStep::scheduled);
  visit("admitted", &LoggedStep::admitted);
  visit("resumed", &LoggedStep::resumed);
  visit("preempted", &LoggedStep::preempted);
  visit("prefix_hit_tokens", &LoggedStep::prefix_hit_tokens);
  visit("drafts", &LoggedStep::drafts);
  visit("free_blocks", &LoggedStep::free_blocks);
  visit("running", &LoggedStep::running);
  visit("waiting", &LoggedStep::waiting);
  visit("tokens_out", &LoggedStep::tokens_out);
  visit("accepted", &LoggedStep::accepted);
  visit("finished", &LoggedStep::finished);
  visit("done_ns", &LoggedStep::done_ns);
  visit("free_blocks_after", &LoggedStep::free_blocks_after);
}

}  // namespace

std::string describe(const LoggedStep& step) {
  std::ostringstream out;
  for_each_field([&](const char* name, auto member) {
    out << "  " << name << " = ";
    write(out, step.*member);
    out << '\n';
  });
  return out.str();
}

std::vector<std::string> differing_fields(const LoggedStep& expected, const LoggedStep& actual) {
  std::vector<std::string> names;
  for_each_field([&](const char* name, auto member) {
    if (expected.*member != actual.*member) {
      names.emplace_back(name);
    }
  });
  return names;
}

std::optional<std::string> compare_logs(const std::vector<LoggedStep>& expected,
                                        const std::vector<LoggedStep>& actual) {
  std::ostringstream out;
  const std::size_t common = std::min(expected.size(), actual.size());
  for (std::size_t i = 0; i < common; ++i) {
    const std::vector<std::string> names = differing_fields(expected[i], actual[i]);
    if (names.empty()) {
      continue;
    }
    out << "step " << expected[i].step << " (line " << i + 1 << ") differs in";
    for (const std::string& name : names) {
      out << ' ' << name;
    }
    out << "\nexpected:\n" << describe(expected[i]) << "actual:\n" << describe(actual[i]);
    if (i > 0) {
      out << "the step before, equal in both:\n" << describe(expected[i - 1]);
    }
    return out.str();
  }
  if (expected.size() == actual.size()) {
    return std::nullopt;
  }
  const bool missing = expected.size() > actual.size();
  out << "expected " << expected.size() << " steps, got " << actual.size() << "; the first "
      << (missing ? "missing" : "extra") << " one:\n"
      << describe(missing ? expected[common] : actual[common]);
  return out.str();
}

}  // namespace servesim::oracle
