/// Is the report one whole file, with the runs' figures in it and nothing that breaks out of the
/// data?
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/report_html.hpp"
#include "report/result_json.hpp"
#include "report/run_series.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

RunResult report_result() {
  RunResult result;
  result.trace = "</script><script>alert('x')</script><!--.jsonl";
  result.policy = "chunked";
  result.config = {{"model", "m"}, {"hash", "00"}};
  result.metrics.total = result.metrics.completed = 3;
  result.metrics.duration_s = 1.0 / 3;
  result.engine.seconds[0] = 0.1;
  result.warnings = {"a <b>warning</b> & more"};
  return result;
}

nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the data of a report are the runs as --json has them") {
  const RunResult result = report_result();
  const std::string html = report_html({"simulate --trace x", 7, {{&result, {{"kv", "a<b"}}}}, {}});
  const nlohmann::json data = data_of(html);
  CHECK(data["schema"] == "servesim/report/v1");
  CHECK(data["seed"] == 7);
  CHECK(data["command"] == "simulate --trace x");
  REQUIRE(data["runs"].size() == 1);
  nlohmann::json expected = nlohmann::json::parse(run_json(result).dump());
  nlohmann::json shown = data["runs"][0]["result"];
  expected["sim"].erase("peak_rss_bytes");  // of the process, and so of the moment
  shown["sim"].erase("peak_rss_bytes");
  CHECK(shown == expected);
  CHECK(data["runs"][0]["varied"]["kv"] == "a<b");
  CHECK(data["runs"][0]["series"].is_null());
  CHECK(data["pareto"].is_null());
}

TEST_CASE("names cannot end the data, and the page needs nothing from elsewhere") {
  const RunResult result = report_result();
  const std::string html = report_html({"<command>", 0, {{&result, {}}}, {}});
  CHECK(html.find("alert('x')</script>") == std::string::npos);
  CHECK(occurrences(html, "<script") == 3);
  CHECK(occurrences(html, "</script>") == 3);
  for (const char* part : {"{{data}}", "{{page.css}}", "{{main.js}}", "src=\"http", "href=\"http",
                           "@import", "url(http"}) {
    INFO(part);
    CHECK(html.find(part) == std::string::npos);
  }
  CHECK(html.find("Leon Sorokin") != std::string::npos);  // the licence of uPlot goes along
  CHECK(html.find("</html>") != std::string::npos);
}

TEST_CASE("curves are rounded to five digits, and those that are zero throughout left out") {
  RunResult result = report_result();
  auto series = std::make_shared<RunSeries>();
  series->engine = {
      0, 0.5, {{"decode_seqs", {1.23456789, 0, 2e-7, 98765432.1}}, {"waiting", {0, 0, 0, 0}}}};
  series->links = {{"nvlink", {0.5, 1}}};
  series->latency.bins = {0, 1, {{"ttft_p50", {std::nan(""), 12}}}};
  series->latency.points = {{"time_s", {1}}, {"ttft", {5}}, {"tpot", {std::nan("")}}};
  result.series = series;
  ParetoPlot pareto{"8 requests/s",
                    "tokens/s per user",
                    "tokens/s per GPU",
                    {{"tp 2", 50, 1000, true}, {"tp 1", 40, 900, false}}};
  const nlohmann::json data = data_of(report_html({"c", 0, {{&result, {}}}, pareto}));
  const nlohmann::json& shown = data["runs"][0]["series"];
  CHECK(shown["engine"]["columns"]["decode_seqs"] == nlohmann::json({1.2346, 0, 2e-7, 98765000.0}));
  CHECK_FALSE(shown["engine"]["columns"].contains("waiting"));
  CHECK(shown["links"][0]["name"] == "nvlink");
  CHECK(shown["latency"]["columns"]["ttft_p50"] == nlohmann::json({nullptr, 12}));
  CHECK(shown["latency"]["points"]["tpot"] == nlohmann::json::parse("[null]"));
  CHECK(data["pareto"]["points"][0]["front"] == true);
  CHECK(data["pareto"]["answer"] == "8 requests/s");
  CHECK(data["pareto"]["x_label"] == "tokens/s per user");
}

}  // namespace servesim
