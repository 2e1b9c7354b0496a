/// Is a timeline a valid trace, and does it hold its window and no more?
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "core/error.hpp"
#include "engine/step_report.hpp"
#include "report/timeline_writer.hpp"
#include "support/catch.hpp"
#include "support/trace_events.hpp"

namespace servesim {
namespace {

using nlohmann::json;

/// A file's path in a folder of its own, which goes away.
struct TimelineFile {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "servesim-timeline-test";
  std::string path = (folder / "t.json").string();
  TimelineFile() { std::filesystem::create_directories(folder); }
  ~TimelineFile() { std::filesystem::remove_all(folder); }

  json read() const {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return json::parse(text.str());
  }
};

StepReport timeline_step(std::int64_t begin_ms, std::int64_t length_ms) {
  StepReport report;
  report.steps = 1;
  report.scheduled = report.last_scheduled = report.begin = SimTime::from_ms(begin_ms);
  report.end = SimTime::from_ms(begin_ms + length_ms);
  report.busy = report.end - report.begin;
  report.decode_seqs = report.decode_tokens = 3;
  report.seconds[0] = report.busy.seconds();
  return report;
}

RequestRecord timeline_request(std::uint64_t index, std::int64_t arrival_ms,
                               std::int64_t scheduled_ms, std::int64_t first_ms,
                               std::int64_t last_ms) {
  RequestRecord record;
  record.index = index;
  record.replica = 0;
  record.arrival = SimTime::from_ms(arrival_ms);
  record.scheduled = SimTime::from_ms(scheduled_ms);
  record.first_token = SimTime::from_ms(first_ms);
  record.last_token = SimTime::from_ms(last_ms);
  return record;
}

/// "b queued 0", "e queued 5" and so on, in the order of the file; milliseconds.
std::vector<std::string> spans_of(const json& document) {
  std::vector<std::string> lines;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] != "b" && event["ph"] != "e") continue;
    std::ostringstream line;
    line << event["ph"].get<std::string>() << ' ' << event["name"].get<std::string>() << ' '
         << event["ts"].get<double>() / 1000;
    lines.push_back(line.str());
  }
  return lines;
}

std::size_t count_phase(const json& document, const std::string& phase) {
  std::size_t count = 0;
  for (const json& event : document["traceEvents"]) count += event["ph"] == phase ? 1 : 0;
  return count;
}

json timeline_of(TimelineWindow window, const std::function<void(TimelineWriter&)>& feed,
                 std::string* warning = nullptr) {
  const TimelineFile file;
  TimelineWriter writer(file.path, window);
  writer.watch(SimTime::from_ms(1000));
  feed(writer);
  writer.finish("a \"run\"", "simulate --trace '</script>'");
  writer.close();
  writer.commit();
  if (warning != nullptr) *warning = writer.warning();
  json document = file.read();
  CHECK(testing::trace_event_fault(document) == "");
  return document;
}

}  // namespace

TEST_CASE("the phases of a request nest, and preemptions lie within them") {
  const json document = timeline_of({}, [](TimelineWriter& writer) {
    StepReport step = timeline_step(1020, 10);
    writer.on_steps(step);
    writer.on_preempted(7, SimTime::from_ms(1035));
    writer.on_resumed(7, SimTime::from_ms(1045));  // spans the first token
    writer.on_transfer({7, 0, SimTime::from_ms(1050), SimTime::from_ms(1060), 1e6});
    writer.on_request(timeline_request(7, 1000, 1020, 1040, 1100));
  });
  const std::vector<std::string> expected{
      "b request 7 0",    "b queued 0",       "e queued 20",  "b prefill 20",   "b preempted 35",
      "e preempted 40",   "e prefill 40",     "b decode 40",  "b preempted 40", "e preempted 45",
      "b KV transfer 50", "e KV transfer 60", "e decode 100", "e request 7 100"};
  CHECK(spans_of(document) == expected);
  CHECK(document["otherData"]["command"] == "simulate --trace '</script>'");
}

TEST_CASE("each stage of a pipeline has a track of its own") {
  const json document = timeline_of({}, [](TimelineWriter& writer) {
    for (const std::int64_t begin : {1020, 1030}) {  // the second begins while the first goes on
      StepReport step = timeline_step(begin, 20);
      const std::vector<StageRun> stages{
          {SimTime::from_ms(begin), SimTime::from_ms(begin + 10)},
          {SimTime::from_ms(begin + 10), SimTime::from_ms(begin + 20)}};
      step.stages = stages;
      writer.on_steps(step);
    }
  });
  std::map<int, std::vector<double>> begins;
  std::vector<std::string> names;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X") begins[event["tid"]].push_back(event["ts"].get<double>() / 1000);
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  }
  CHECK(begins == std::map<int, std::vector<double>>{{1, {20, 30}}, {2, {30, 40}}});
  CHECK(names == std::vector<std::string>{"stage 0", "stage 1"});
  std::size_t with_components = 0;  // what a step takes stands once
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "X") with_components += event["args"].contains("gemm_us") ? 1 : 0;
  }
  CHECK(with_components == 2);
}

TEST_CASE("a request without a queue or an end of its preemption is still whole") {
  const json document = timeline_of({}, [](TimelineWriter& writer) {
    writer.on_steps(timeline_step(1000, 10));
    writer.on_preempted(0, SimTime::from_ms(1090));
    writer.on_request(timeline_request(0, 1000, 1000, 1040, 1100));
    RequestRecord rejected = timeline_request(1, 1000, -1, -1, -1);
    rejected.status = RequestStatus::kRejected;
    writer.on_request(rejected);
  });
  CHECK(spans_of(document) == std::vector<std::string>{"b request 0 0", "b prefill 0",
                                                       "e prefill 40", "b decode 40",
                                                       "b preempted 90", "e preempted 100",
                                                       "e decode 100", "e request 0 100"});
}

TEST_CASE("the window cuts requests and leaves out steps") {
  std::string warning;
  const json document = timeline_of(
      {0.02, 0.05},
      [](TimelineWriter& writer) {
        for (int i = 0; i < 10; ++i) writer.on_steps(timeline_step(1000 + 10 * i, 10));
        writer.on_request(timeline_request(0, 1000, 1010, 1030, 1100));
        writer.on_request(timeline_request(1, 1060, 1070, 1080, 1100));
      },
      &warning);
  CHECK(count_phase(document, "X") == 3);
  CHECK(spans_of(document) == std::vector<std::string>{"b request 0 20", "b prefill 20",
                                                       "e prefill 30", "b decode 30", "e decode 50",
                                                       "e request 0 50"});
  CHECK(warning.find("0.02:0.05 s of a run of 0.100 s") != std::string::npos);
}

TEST_CASE("a window after the end is empty and says so") {
  std::string warning;
  const json document = timeline_of(
      {100, 200}, [](TimelineWriter& writer) { writer.on_steps(timeline_step(1000, 10)); },
      &warning);
  CHECK(count_phase(document, "X") == 0);
  CHECK(warning.find("empty") != std::string::npos);
}

TEST_CASE("steps carry their composition, and counters change only when their value does") {
  const json document = timeline_of({}, [](TimelineWriter& writer) {
    StepReport step = timeline_step(1000, 10);
    const std::vector<PrefillChunk> chunks{{100, 0}, {28, 64}};
    step.chunks = chunks;
    step.waiting = 2;
    step.kv = {320, 16, 32};
    writer.on_steps(step);
    step.scheduled = step.begin = SimTime::from_ms(1010);
    step.end = SimTime::from_ms(1020);
    writer.on_steps(step);
    StepReport idle;
    idle.scheduled = idle.begin = idle.end = SimTime::from_ms(1020);
    writer.on_steps(idle);
    writer.on_link({"a \"link\"", SimTime::from_ms(1000), SimTime::from_ms(1010), 1e9, 1e12});
  });
  const json& events = document["traceEvents"];
  const auto slice = std::find_if(events.begin(), events.end(),
                                  [](const json& event) { return event["ph"] == "X"; });
  REQUIRE(slice != events.end());
  CHECK((*slice)["name"] == "mixed");
  const json& args = (*slice)["args"];
  CHECK(args["prefill_tokens"] == 128);
  CHECK(args["tokens"] == 131);
  CHECK(args["decode_seqs"] == 3);
  CHECK(args["kv_tokens"] == 320);
  CHECK(args["gemm_us"] == 10000);
  CHECK(count_phase(document, "C") == 3 + 3 + 2);
}

TEST_CASE("random runs give valid traces") {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const TimelineWindow window{static_cast<double>(random() % 100) / 1000,
                                0.1 + static_cast<double>(random() % 400) / 1000};
    timeline_of(window, [&random](TimelineWriter& writer) {
      const auto ms = [&random](int most) {
        return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
      };
      std::int64_t at = 1000;
      for (int i = 0; i < 40; ++i) {
        StepReport step = timeline_step(at += ms(10), 1 + ms(10));
        step.replica = static_cast<std::int32_t>(i % 2);
        at += 10;
        writer.on_steps(step);
      }
      for (std::uint64_t i = 0; i < 20; ++i) {
        const std::int64_t arrival = 1000 + ms(400);
        const std::int64_t scheduled = arrival + ms(50);
        const std::int64_t first = scheduled + ms(50);
        const std::int64_t last = first + ms(100);
        for (std::int64_t t = scheduled; t < last && random() % 2 == 0;) {
          writer.on_preempted(i, SimTime::from_ms(t));
          t += ms(30);
          if (random() % 5 > 0) writer.on_resumed(i, SimTime::from_ms(t));
          if (random() % 5 == 0) break;
          writer.on_transfer({i, 0, SimTime::from_ms(t - 5), SimTime::from_ms(t + 5), 1});
        }
        writer.on_request(timeline_request(i, arrival, scheduled, first, last));
      }
    });
  }
}

TEST_CASE("windows are read, and what is none is refused") {
  CHECK(parse_timeline_window("5:10.5").start_s == 5);
  CHECK(parse_timeline_window("5:10.5").end_s == 10.5);
  CHECK(parse_timeline_window(":3").start_s == 0);
  CHECK(parse_timeline_window("2:").end_s == 1e9);
  for (const char* bad : {"", "5", "a:b", "5:5", "6:5", "-1:5", "0:-1", "1:2:3", "nan:5", "0:inf",
                          "0:1e30", "1 :2", "0x1:5", "::"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_timeline_window(bad), InputError);
  }
}

TEST_CASE("timeline files are .json or .json.gz") {
  CHECK_THROWS_AS(TimelineWriter("t.txt", {}), InputError);
  CHECK_THROWS_AS(TimelineWriter("/no/such/folder/t.json", {}), InputError);
}

}  // namespace servesim
