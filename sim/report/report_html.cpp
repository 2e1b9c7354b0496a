#include "report/report_html.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/derived.hpp"
#include "report/result_json.hpp"
#include "report/run_series.hpp"

namespace servesim {
namespace web {

// sim/report/web, built in by CMake.
extern const std::string_view page_html, page_css, uPlot_iife_min_js, uPlot_min_css, LICENSE,
    format_js, charts_js, sections_js, main_js;

}  // namespace web

namespace {

using ReportJson = nlohmann::ordered_json;

/// Five digits are more than a screen shows, and half the bytes.
ReportJson short_value(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e5) {
    return static_cast<std::int64_t>(value);
  }
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : 0;
  return std::isfinite(rounded) ? ReportJson(rounded) : ReportJson(value);
}

ReportJson short_values(const std::vector<double>& values) {
  ReportJson list = ReportJson::array();
  for (const double value : values) list.push_back(short_value(value));
  return list;
}

bool all_zero(const std::vector<double>& values) {
  for (const double value : values) {
    if (value != 0) return false;
  }
  return true;
}

/// Columns that are zero throughout are left out.
ReportJson over_time_json(const OverTime& series) {
  ReportJson columns = ReportJson::object();
  for (const Column& column : series.columns) {
    if (!all_zero(column.values)) columns[column.name] = short_values(column.values);
  }
  return {{"start_s", series.start_s}, {"bin_s", series.bin_s}, {"columns", columns}};
}

ReportJson samples_json(const StepSamples& samples) {
  ReportJson rows = ReportJson::array();
  for (const StepSample& s : samples.samples) {
    rows.push_back({short_value(s.time_s), s.steps, short_value(s.seconds * 1e3),
                    short_value(s.flops), short_value(s.hbm_bytes), short_value(s.prefill_tokens),
                    short_value(s.decode_seqs), short_value(s.context)});
  }
  return {{"every", samples.every},
          {"fields",
           {"time_s", "steps", "step_ms", "flops", "hbm_bytes", "prefill_tokens", "decode_seqs",
            "decode_context"}},
          {"rows", rows}};
}

ReportJson series_json(const RunSeries& series) {
  ReportJson json;
  json["engine"] = over_time_json(series.engine);
  json["links"] = ReportJson::array();
  for (const LinkSeries& link : series.links) {
    json["links"].push_back({{"name", link.name}, {"busy", short_values(link.busy)}});
  }
  json["cdf"] = ReportJson::object();
  for (const Cdf& cdf : series.cdfs) {
    if (cdf.shares.empty()) continue;
    json["cdf"][cdf.name] = {{"share", short_values(cdf.shares)},
                             {"ms", short_values(cdf.values_ms)}};
  }
  ReportJson latency = over_time_json(series.latency.bins);
  latency["by"] = series.latency.by_first_token ? "first_token" : "arrival";
  latency["points"] = ReportJson::object();
  for (const Column& column : series.latency.points) {
    latency["points"][column.name] = short_values(column.values);
  }
  latency["every"] = series.latency.every;
  json["latency"] = std::move(latency);
  json["steps"] = {{"decode", samples_json(series.decode_steps)},
                   {"prefill", samples_json(series.prefill_steps)}};
  return json;
}

ReportJson pareto_json(const ParetoPlot& plot) {
  if (plot.points.empty()) return nullptr;
  ReportJson points = ReportJson::array();
  for (const ParetoPoint& p : plot.points) {
    points.push_back({{"label", p.label}, {"x", p.x}, {"y", p.y}, {"front", p.on_front}});
  }
  return {{"answer", plot.answer},
          {"x_label", plot.x_label},
          {"y_label", plot.y_label},
          {"points", points}};
}

ReportJson report_json(const ReportInput& input) {
  ReportJson document;
  document["schema"] = "servesim/report/v1";
  document["version"] = version();
  document["command"] = input.command;
  document["seed"] = input.seed;
  ReportJson& runs = document["runs"] = ReportJson::array();
  for (const ReportRun& run : input.runs) {
    ReportJson json;
    json["varied"] = ReportJson::object();
    for (const auto& [name, value] : run.varied) json["varied"][name] = value;
    json["result"] = run_json(*run.result);
    json["replicas"] = run.result->replicas;
    json["kv_slots"] = kv_pool_of(*run.result).kv.capacity_slots;
    json["peak_flops"] = run.result->peak_flops;
    json["peak_bytes_per_s"] = run.result->peak_bytes_per_s;
    json["series"] = run.result->series ? series_json(*run.result->series) : ReportJson(nullptr);
    runs.push_back(std::move(json));
  }
  document["pareto"] = pareto_json(input.pareto);
  return document;
}

/// JSON that may stand in a script element: no "<", so no end tag and no comment.
std::string embedded(const ReportJson& json) {
  const std::string text = json.dump(-1, ' ', false, ReportJson::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string report_html(const ReportInput& input) {
  const std::string data = embedded(report_json(input));
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"uplot.css", web::uPlot_min_css},
      {"page.css", web::page_css},
      {"uplot.licence", web::LICENSE},
      {"uplot.js", web::uPlot_iife_min_js},
      {"format.js", web::format_js},
      {"charts.js", web::charts_js},
      {"sections.js", web::sections_js},
      {"main.js", web::main_js},
      {"data", data}};
  constexpr std::string_view kOpen = "{{";
  constexpr std::string_view kClose = "}}";
  std::string html;
  std::string_view rest = web::page_html;
  for (std::size_t at = rest.find(kOpen); at != std::string_view::npos; at = rest.find(kOpen)) {
    html += rest.substr(0, at);
    const std::size_t end = rest.find(kClose, at);
    const std::string_view name = rest.substr(at + kOpen.size(), end - at - kOpen.size());
    for (const auto& [part, text] : parts) {
      if (part == name) html += text;
    }
    rest.remove_prefix(end + kClose.size());
  }
  html += rest;
  return html;
}

}  // namespace servesim
