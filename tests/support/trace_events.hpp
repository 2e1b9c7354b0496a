/// The Trace Event Format, as far as a timeline uses it: what Perfetto's importer asks of a file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace servesim::testing {

/// The first thing that is wrong with `document`, or empty. Checked: the fields each phase needs
/// and their types; times that never run back on a track; complete events of a thread that do not
/// overlap; every "e" closes the last open "b" of its id, by name, and none stays open; counters
/// with numbers only; every process and thread with events has a name.
inline std::string trace_event_fault(const nlohmann::json& document) {
  using Json = nlohmann::json;
  if (!document.is_object() || !document.contains("traceEvents")) return "no traceEvents";
  std::map<std::string, double> last_ts;
  std::map<std::pair<int, int>, double> busy_until;
  std::map<std::tuple<int, std::string, std::string>, std::vector<std::string>> open;
  std::map<int, bool> named_process;
  for (const Json& event : document["traceEvents"]) {
    const std::string text = event.dump();
    for (const char* key : {"ph", "name"}) {
      if (!event.contains(key) || !event[key].is_string()) return std::string(key) + ": " + text;
    }
    for (const char* key : {"ts", "pid"}) {
      if (!event.contains(key) || !event[key].is_number()) return std::string(key) + ": " + text;
    }
    const std::string phase = event["ph"];
    const double ts = event["ts"];
    const int pid = event["pid"];
    if (ts < 0) return "before the start: " + text;
    if (event.contains("args") && !event["args"].is_object()) return "args: " + text;
    if (phase == "M") {
      if (event["name"] == "process_name") named_process[pid] = true;
      continue;
    }
    if (!named_process[pid]) return "a process without a name: " + text;
    std::string track = phase + std::to_string(pid);
    if (phase == "X") {
      if (!event.contains("dur") || !(event["dur"] >= 0)) return "dur: " + text;
      if (!event.contains("tid") || !event["tid"].is_number_integer()) return "tid: " + text;
      const double slack = 1e-3;  // times are rounded to nanoseconds
      double& until = busy_until[{pid, event["tid"]}];
      if (ts < until - slack) return "overlaps the one before: " + text;
      until = ts + event["dur"].get<double>();
      track += "/" + event["tid"].dump();
    } else if (phase == "C") {
      if (!event.contains("args") || event["args"].empty())
        return "a counter without values: " + text;
      for (const Json& value : event["args"]) {
        if (!value.is_number()) return "a counter's value: " + text;
      }
      track += "/" + event["name"].get<std::string>();
    } else if (phase == "b" || phase == "e") {
      if (!event.contains("id") || !event.contains("cat")) return "id or cat: " + text;
      std::vector<std::string>& stack = open[{pid, event["cat"], event["id"]}];
      if (phase == "b") {
        stack.push_back(event["name"]);
      } else {
        if (stack.empty() || stack.back() != event["name"]) return "closes nothing: " + text;
        stack.pop_back();
      }
      track = "async" + std::to_string(pid) + "/" + event["id"].get<std::string>();
    } else {
      return "unknown phase: " + text;
    }
    const auto [place, first] = last_ts.try_emplace(track, ts);
    if (!first && ts < place->second) return "time runs back: " + text;
    place->second = ts;
  }
  for (const auto& [key, stack] : open) {
    if (!stack.empty()) return "left open: " + stack.back();
  }
  return "";
}

}  // namespace servesim::testing
