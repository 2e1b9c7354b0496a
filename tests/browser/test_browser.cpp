/// Does the report work in a real browser: no errors, charts drawn, figures equal to the JSON,
/// usable by keyboard and on a phone? Needs Chromium; says so and passes without one, unless
/// SERVESIM_REQUIRE_BROWSER=1.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "report/report_html.hpp"
#include "report/run_series.hpp"
#include "smoke/process.hpp"
#include "support/catch.hpp"
#include "support/shared.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::read_file;
using testing::TemporaryFolder;

const std::string kSource = SERVESIM_SOURCE_DIR;

std::optional<std::string> browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"}) {
    if (testing::shell(std::string("command -v ") + name, "").exit_code == 0) return name;
  }
  const char* required = std::getenv("SERVESIM_REQUIRE_BROWSER");
  if (required != nullptr && std::string(required) == "1") FAIL("Chromium is not installed");
  WARN("skipped: no Chromium");
  return std::nullopt;
}

std::string percent_decoded(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Opens `html` in a window of `width` pixels with the probe at its end; what the probe found, with
/// "console" being what the page said.
json probe(const std::string& browser, const std::string& html, int width = 1280) {
  std::string page = html;
  const std::string listen =
      "<script>window.probeErrors = []; addEventListener('error', (e) => "
      "probeErrors.push(e.message)); addEventListener('securitypolicyviolation', (e) => "
      "probeErrors.push(e.violatedDirective));</script>";
  page.insert(page.find("<head>") + 6, listen);
  page.insert(page.rfind("</body>"),
              "<script>" + read_file(kSource + "/tests/browser/probe.js") + "</script>");
  const TemporaryFolder folder;
  folder.write("report.html", page);
  const ProcessResult result = testing::shell(
      "HOME=\"$PWD\" timeout 60 " + browser +
          " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
          "--user-data-dir=\"$PWD/profile\" --enable-logging=stderr --host-resolver-rules='MAP * "
          "~NOTFOUND' --window-size=" +
          std::to_string(width) + ",900 --dump-dom \"file://$PWD/report.html\"",
      folder.path());
  INFO(result.err.substr(0, 3000));
  REQUIRE(result.exit_code == 0);
  const std::string open = "<pre id=\"probe\">";
  const std::size_t begin = result.out.find(open);
  REQUIRE(begin != std::string::npos);
  const std::size_t text = begin + open.size();
  json found =
      json::parse(percent_decoded(result.out.substr(text, result.out.find('<', text) - text)));
  found["console"] = json::array();
  for (std::size_t at = result.err.find(":CONSOLE"); at != std::string::npos;
       at = result.err.find(":CONSOLE", at + 1)) {
    found["console"].push_back(result.err.substr(at, result.err.find('\n', at) - at));
  }
  return found;
}

void check_quiet(const json& found) {
  CHECK(found["errors"] == json::array());
  CHECK(found["console"] == json::array());
  CHECK(found["elements_from_names"] == 0);
}

/// Every chart has been drawn and says in words what it shows.
std::map<std::string, int> check_charts(const json& charts) {
  std::map<std::string, int> series;
  for (const json& chart : charts) {
    INFO(chart.dump());
    CHECK(chart["colours"].get<int>() > 2);
    CHECK(chart["label"].get<std::string>().size() > 20);
    CHECK(chart["focusable"] == true);
    series[chart["id"]] = chart["series"];
  }
  return series;
}

/// The figures of the tables are those of --json, to the last digit in their data and as far as
/// they are shown.
std::size_t check_cells(const json& cells, const json& runs) {
  for (const json& cell : cells) {
    INFO(cell.dump());
    json expected = runs[cell["run"].get<std::size_t>()];
    std::string key = cell["key"];
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
      expected = expected.at(key.substr(0, dot));
      key = key.substr(dot + 1);
    }
    expected = expected.at(key);
    if (expected.is_null()) {
      CHECK(cell["value"] == "");
      continue;
    }
    CHECK(std::stod(cell["value"].get<std::string>()) == expected.get<double>());
    std::string text = cell["text"];
    std::erase(text, ',');
    const double scale =
        text.find('%') != std::string::npos && cell["table"] == "headline" ? 100 : 1;
    CHECK(std::stod(text) == Approx(scale * expected.get<double>()).epsilon(6e-3).margin(0.5e-3));
  }
  return cells.size();
}

struct Made {
  std::string html;
  json document;
};

Made make_report(const TemporaryFolder& folder, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"--report", "r.html", "--json", "r.json", "--quiet"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProcessResult result = testing::simulate(arguments, folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return {read_file(folder.path() + "/r.html"), json::parse(read_file(folder.path() + "/r.json"))};
}

}  // namespace

TEST_CASE("a comparison in a browser") {
  const auto chromium = browser();
  if (!chromium) return;
  const TemporaryFolder folder;
  const Made made = make_report(
      folder, {"--trace", kSource + "/workloads/chat.jsonl", "--policy", "static,chunked",
               "--num-prompts", "400", "--goodput", "ttft:500", "tpot:50"});
  const json found = probe(*chromium, made.html);
  check_quiet(found);
  const std::map<std::string, int> charts = check_charts(found["charts"]);
  for (const char* id : {"cdf-ttft", "cdf-tpot", "cdf-itl", "cdf-e2el", "batch", "queue"}) {
    INFO(id);
    REQUIRE(charts.contains(id));
    CHECK(charts.at(id) == 2);
  }
  for (const char* id : {"ttft-time", "tpot-time", "tokens", "kv", "components", "roofline"}) {
    INFO(id);
    CHECK(charts.contains(id));
  }
  CHECK_FALSE(charts.contains("links"));
  CHECK_FALSE(charts.contains("pareto"));
  CHECK(check_cells(found["cells"], made.document["runs"]) > 40);
  CHECK(found["command"] == made.document["command"]);
  CHECK(found["spoken"].get<std::string>().find("100 %") != std::string::npos);
  CHECK(found["table_rows"].get<int>() > 10);
  CHECK(found["wider_than_screen"] <= 0);
  CHECK(check_charts(found["charts_without_first"]).at("cdf-ttft") == 1);
  CHECK(check_charts(found["charts_again"]).at("cdf-ttft") == 2);
  check_charts(found["charts_of_last"]);
}

TEST_CASE("the report of 19,366 requests is small, and ready in two seconds") {
  const auto chromium = browser();
  const auto shared = testing::shared_dir();
  if (!chromium || !shared) return;
  const TemporaryFolder folder;
  const Made made = make_report(
      folder, {"--trace", *shared + "/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv"});
  REQUIRE(made.document["runs"][0]["requests"]["total"] == 19366);
  CHECK(made.html.size() < 3'000'000);
  const json found = probe(*chromium, made.html);
  check_quiet(found);
  check_charts(found["charts"]);
  check_cells(found["cells"], made.document["runs"]);
  CHECK(found["ready_ms"] > 0);
  CHECK(found["ready_ms"] < 2000);
  WARN(made.html.size() << " bytes, ready after " << found["ready_ms"] << " ms");
}

TEST_CASE("on a phone: a search, links, names that look like markup, and a run without curves") {
  const auto chromium = browser();
  if (!chromium) return;
  RunResult result;
  result.trace = "<b>bold</b><img src=x onerror=alert(1)>.jsonl";
  result.policy = "chunked";
  result.config = {{"model", "<script>alert(2)</script>"}};
  result.warnings = {"</script><b>careful</b>"};
  result.kv.capacity_tokens = result.kv.capacity_slots = 1000;
  RunResult bare = result;
  auto series = std::make_shared<RunSeries>();
  series->engine = {0, 1, {{"kv_used", {1, 2, 3}}, {"kv_external", {3, 2, 1}}}};
  series->links = {{"<b>nvlink</b>", {0.5, 1, 0}}};
  result.series = series;
  const ParetoPlot pareto{
      "The highest rate is <8> requests/s",
      "tokens/s per user",
      "tokens/s per GPU",
      {{"tp <2>", 50, 1000, true}, {"tp 4", 80, 500, true}, {"tp 1", 40, 900, false}}};
  const std::string html =
      report_html({"simulate '<b>'",
                   0,
                   {{&result, {{"kv", "paged"}}}, {&bare, {{"kv", "contiguous:max"}}}},
                   pareto});
  const json found = probe(*chromium, html, 500);
  check_quiet(found);
  const std::map<std::string, int> charts = check_charts(found["charts"]);
  CHECK(charts.at("links") == 1);
  CHECK(charts.at("pareto") == 3);
  CHECK(charts.at("kv") == 2);
  CHECK_FALSE(charts.contains("components"));
  CHECK(found["warnings"].at(0) == "</script><b>careful</b>");
  CHECK(found["command"] == "simulate '<b>'");
  CHECK(found["width"] == 500);
  CHECK(found["wider_than_screen"] <= 0);
}

}  // namespace servesim
