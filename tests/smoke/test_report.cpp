/// Do --timeline and --report hold what the run's other outputs say, and refuse what they cannot do
/// before the run starts?
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "smoke/process.hpp"
#include "support/catch.hpp"
#include "support/trace_events.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::read_file;
using testing::TemporaryFolder;

const std::string kReportChat = std::string(SERVESIM_SOURCE_DIR) + "/workloads/chat.jsonl";

ProcessResult run_in(const TemporaryFolder& folder, const std::string& flags) {
  return testing::shell("simulate --trace '" + kReportChat + "' " + flags, folder.path());
}

json good_run(const TemporaryFolder& folder, const std::string& flags) {
  const ProcessResult result = run_in(folder, "--quiet --json r.json " + flags);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  return json::parse(read_file(folder.path() + "/r.json"))["runs"][0];
}

json report_data(const std::string& html) {
  const std::string open = "id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("a timeline of the whole run has every step and request, and is a valid trace") {
  for (const char* flags :
       {"--policy chunked", "--policy static", "--policy continuous --no-async-scheduling",
        "--replicas 2 --router least-loaded", "--num-gpu-blocks-override 700 --max-model-len 8192",
        "--step-time linear:base_us=5000,per_token_us=20",
        "--speculative-method eagle --num-speculative-tokens 3 --speculative-acceptance-rate "
        "0.7"}) {
    INFO(flags);
    const TemporaryFolder folder;
    const json run = good_run(folder, std::string("--num-prompts 80 --request-rate 20 --timeline "
                                                  "t.json --timeline-window 0: ") +
                                          flags);
    const json timeline = json::parse(read_file(folder.path() + "/t.json"));
    CHECK(testing::trace_event_fault(timeline) == "");
    std::int64_t steps = 0, requests = 0, preempted = 0;
    double busy_us = 0;
    std::map<std::string, double> component_us;
    for (const json& event : timeline["traceEvents"]) {
      const std::string name = event["name"];
      preempted += event["ph"] == "b" && name == "preempted" ? 1 : 0;
      requests += event["ph"] == "b" && name.starts_with("request ") ? 1 : 0;
      if (event["ph"] != "X") continue;
      ++steps;
      busy_us += event["dur"].get<double>();
      for (const auto& [key, value] : event["args"].items()) {
        if (key.ends_with("_us") && key != "scheduled_us") {
          component_us[key.substr(0, key.size() - 3)] += value.get<double>();
        }
      }
    }
    const json& engine = run["engine"];
    CHECK(steps == engine["steps"]);
    CHECK(requests == run["completed"]);
    CHECK(preempted >= run["kv"]["preemptions"]);
    CHECK(busy_us / 1e3 ==
          Approx(engine["mean_step_ms"].get<double>() * static_cast<double>(steps)));
    for (const auto& [name, seconds] : engine["time_by_component_s"].items()) {
      INFO(name);
      CHECK(component_us[name] * 1e-6 == Approx(seconds.get<double>()).epsilon(1e-4).margin(1e-4));
    }
  }
}

TEST_CASE("the window bounds a timeline, and what it leaves out is said") {
  const TemporaryFolder folder;
  const std::string base = "--num-prompts 400 --json /dev/null --no-progress --timeline ";
  const ProcessResult first = run_in(folder, base + "a.json");
  CHECK(first.err.find("the timeline holds 0:60 s of a run of") != std::string::npos);
  CHECK(first.err.find("--timeline-window") != std::string::npos);
  const ProcessResult whole = run_in(folder, base + "b.json --timeline-window 0:");
  CHECK(whole.err.empty());
  const ProcessResult late = run_in(folder, base + "c.json --timeline-window 100000:200000");
  CHECK(late.err.find("the timeline is empty") != std::string::npos);
  const ProcessResult middle = run_in(folder, base + "d.json --timeline-window 20:25");
  CHECK(middle.exit_code == 0);
  for (const char* name : {"a.json", "b.json", "c.json", "d.json"}) {
    INFO(name);
    CHECK(testing::trace_event_fault(json::parse(read_file(folder.path() + "/" + name))) == "");
  }
  CHECK(read_file(folder.path() + "/d.json").size() < read_file(folder.path() + "/a.json").size());
}

TEST_CASE("compressed timelines and reports are the same each time") {
  const TemporaryFolder folder;
  const std::string flags = "--num-prompts 100 --timeline t.json.gz --report r.html";
  good_run(folder, flags);
  const std::string timeline = read_file(folder.path() + "/t.json.gz");
  json report = report_data(read_file(folder.path() + "/r.html"));
  good_run(folder, flags + " --threads 2");
  json again = report_data(read_file(folder.path() + "/r.html"));
  CHECK(testing::shell("gzip -dc t.json.gz | head -c 21", folder.path()).out ==
        "{\"displayTimeUnit\":\"m");
  for (json* data : {&report, &again}) {
    data->erase("command");
    (*data)["runs"][0]["result"].erase("sim");
  }
  CHECK(report == again);
  good_run(folder, flags);
  CHECK(read_file(folder.path() + "/t.json.gz") == timeline);
}

TEST_CASE("neither changes the results") {
  const TemporaryFolder folder;
  json plain = good_run(folder, "--num-prompts 300 --policy continuous");
  json watched =
      good_run(folder, "--num-prompts 300 --policy continuous --timeline t.json --report r.html");
  plain.erase("sim");
  watched.erase("sim");
  CHECK(plain == watched);
}

TEST_CASE("the curves of a report add up to the run") {
  for (const char* flags :
       {"--policy chunked", "--policy static --replicas 2",
        "--num-gpu-blocks-override 700 --max-model-len 8192",
        "--num-gpu-blocks-override 700 --max-model-len 8192 --preemption-mode "
        "swap --request-rate 60",
        "--kv contiguous:pow2 --num-gpu-blocks-override 700 --max-model-len 8192"}) {
    INFO(flags);
    const TemporaryFolder folder;
    const json run =
        good_run(folder, std::string("--num-prompts 200 --report r.html ") + flags +
                             (std::string(flags).find("--request-rate") == std::string::npos
                                  ? " --request-rate 20"
                                  : ""));
    const json data = report_data(read_file(folder.path() + "/r.html"));
    REQUIRE(data["runs"].size() == 1);
    json shown = data["runs"][0]["result"];
    json expected = run;
    shown.erase("sim");
    expected.erase("sim");
    CHECK(shown == expected);
    const json& engine = data["runs"][0]["series"]["engine"];
    const auto integral = [&engine](const std::string& name) {
      double sum = 0;
      if (engine["columns"].contains(name)) {
        for (const json& value : engine["columns"][name]) sum += value.get<double>();
      }
      return sum * engine["bin_s"].get<double>();
    };
    const double replicas = data["runs"][0]["replicas"];
    const double duration = run["duration"];
    const double capacity = run["kv"]["capacity_tokens"].get<double>() * replicas * duration;
    const double busy_s = run["engine"]["busy_fraction"].get<double>() * duration * replicas;
    CHECK(integral("busy") == Approx(busy_s).epsilon(1e-4));
    CHECK(integral("kv_used") ==
          Approx(run["kv"]["mean_used"].get<double>() * capacity).epsilon(1e-3));
    CHECK(integral("kv_reserved") ==
          Approx(run["kv"]["reservation_waste"].get<double>() * capacity).epsilon(1e-3).margin(1));
    CHECK(integral("kv_external") ==
          Approx(run["kv"]["external_fragmentation"].get<double>() * capacity)
              .epsilon(1e-3)
              .margin(1));
    for (const auto& [name, seconds] : run["engine"]["time_by_component_s"].items()) {
      INFO(name);
      CHECK(integral("time_" + name) == Approx(seconds.get<double>()).epsilon(1e-4).margin(1e-4));
    }
    const json& cdf = data["runs"][0]["series"]["cdf"]["ttft"];
    CHECK(cdf["share"].back() == 1);
  }
}

TEST_CASE("what crosses the links of a disaggregated run is in its report and its timeline") {
  const TemporaryFolder folder;
  const json run = good_run(folder,
                            "--num-prompts 100 --request-rate 10 --policy disaggregated "
                            "--prefill-replicas 2 --kv-link 100gbe --report r.html --timeline "
                            "t.json --timeline-window 0:");
  const json data = report_data(read_file(folder.path() + "/r.html"));
  const json& series = data["runs"][0]["series"];
  REQUIRE(series["links"].size() == run["links"].size());
  REQUIRE(!run["links"].empty());
  for (const json& link : run["links"]) {
    const auto curve = std::find_if(series["links"].begin(), series["links"].end(),
                                    [&](const json& c) { return c["name"] == link["name"]; });
    REQUIRE(curve != series["links"].end());
    double busy_s = 0;
    for (const json& value : (*curve)["busy"]) busy_s += value.get<double>();
    busy_s *= series["engine"]["bin_s"].get<double>();
    CHECK(busy_s ==
          Approx(link["utilization"].get<double>() * run["duration"].get<double>()).epsilon(0.01));
  }
  const json timeline = json::parse(read_file(folder.path() + "/t.json"));
  CHECK(testing::trace_event_fault(timeline) == "");
  std::int64_t transfers = 0;
  double last_rate = -1;
  for (const json& event : timeline["traceEvents"]) {
    transfers += event["ph"] == "b" && event["name"] == "KV transfer" ? 1 : 0;
    if (event["ph"] == "C" && event["args"].contains("GB/s")) {
      last_rate = event["args"]["GB/s"].get<double>();
      CHECK(last_rate >= 0);
    }
  }
  CHECK(transfers == run["kv_transfer"]["transfers"].get<std::int64_t>());
  CHECK(last_rate == 0);
}

TEST_CASE("a report or a timeline that cannot be is refused before the run") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> refused{
      {"--report no/such/r.html", "no/such/r.html"},
      {"--report r.txt", ".html"},
      {"--report -", "only --json"},
      {"--report r.html --report s.html", "2 times"},
      {"--report", "needs a value"},
      {"--timeline no/such/t.json", "no/such/t.json"},
      {"--timeline t.txt", ".json or .json.gz"},
      {"--timeline t.json --timeline u.json", "2 times"},
      {"--timeline t.json --json t.json", "both write"},
      {"--report r.html --requests ./r.html", "both write"},
      {"--timeline t.json --policy static,chunked", "single run"},
      {"--timeline-window 0:5", "needs --timeline"},
      {"--timeline t.json --timeline-window 5", "START:END"},
      {"--timeline t.json --timeline-window 5:5", "empty"},
      {"--timeline t.json --timeline-window 9:5", "empty"},
      {"--timeline t.json --timeline-window=-1:5", "-1"},
      {"--timeline t.json --timeline-window a:b", "'a'"},
      {"--timeline t.json --timeline-window 0:1e30", "1e30"},
  };
  for (const auto& [flags, word] : refused) {
    const ProcessResult result = run_in(folder, "--no-progress " + flags);
    INFO(flags << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.error_lines() == 1);
    CHECK(result.out.empty());
    CHECK(result.err.find(word) != std::string::npos);
    CHECK(folder.names().empty());
  }
}

TEST_CASE("ids and file names cannot break out of a timeline or a report") {
  const TemporaryFolder folder;
  const std::string id = "</script><b>\"é\\ \n";
  folder.write(
      "<b>t.jsonl",
      json({{"id", id}, {"arrival_ms", 0}, {"input_tokens", 5}, {"output_tokens", 2}}).dump() +
          "\n");
  const ProcessResult result = testing::shell(
      "simulate --trace '<b>t.jsonl' --quiet --timeline t.json --report r.html", folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json timeline = json::parse(read_file(folder.path() + "/t.json"));
  const json& events = timeline["traceEvents"];
  CHECK(std::any_of(events.begin(), events.end(),
                    [&](const json& event) { return event["name"] == "request " + id; }));
  CHECK(report_data(read_file(folder.path() + "/r.html"))["runs"][0]["result"]["trace"] ==
        "<b>t.jsonl");
}

TEST_CASE("the check of traces does find faults") {
  const json name{{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"ts", 0}};
  const auto fault = [&name](const std::vector<json>& events) {
    json all = json::array({name});
    for (const json& event : events) all.push_back(event);
    return testing::trace_event_fault({{"traceEvents", all}});
  };
  const json slice{{"ph", "X"}, {"name", "a"}, {"pid", 1}, {"tid", 1}, {"ts", 5}, {"dur", 2}};
  const json begin{{"ph", "b"}, {"name", "a"}, {"cat", "c"}, {"id", "1"}, {"pid", 1}, {"ts", 5}};
  json end = begin;
  end["ph"] = "e";
  json other = end;
  other["name"] = "b";
  json earlier = slice;
  earlier["ts"] = 6;
  json homeless = slice;
  homeless["pid"] = 2;
  json endless = slice;
  endless.erase("dur");
  const json counter{{"ph", "C"}, {"name", "a"}, {"pid", 1}, {"ts", 5}, {"args", {{"x", "1"}}}};
  CHECK(fault({slice, begin, end}) == "");
  for (const std::vector<json>& bad : {std::vector<json>{slice, earlier},
                                       {begin},
                                       {end},
                                       {begin, other},
                                       {homeless},
                                       {endless},
                                       {counter}}) {
    CHECK(fault(bad) != "");
  }
}

}  // namespace servesim
