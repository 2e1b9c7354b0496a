#include "report/timeline_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "engine/step_report.hpp"
#include "report/gzip.hpp"

namespace servesim {
namespace {

constexpr int kLinkProcess = 1;
constexpr int kStepThread = 1;

int process_of(std::int32_t replica) {
  return replica + 2;
}

/// A JSON string literal.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double parse_bound(std::string_view text, std::string_view whole, double fallback) {
  if (text.empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read || !(value >= 0) || value > 1e9) {
    throw InputError(fmt::format(
        "--timeline-window {}: '{}' is no time; accepted: START:END in seconds after the first "
        "arrival, 0 to 1e9",
        whole, text));
  }
  return value;
}

std::string_view kind_of(const StepReport& report) {
  if (report.chunks.empty()) return "decode";
  return report.decode_seqs > 0 ? "mixed" : "prefill";
}

bool is_timeline_name(std::string_view path) {
  return path.ends_with(".json") || path.ends_with(".json.gz");
}

const std::string& checked(const std::string& path) {
  if (!is_timeline_name(path)) {
    throw InputError(fmt::format("--timeline {}: the name must end in .json or .json.gz", path));
  }
  return path;
}

}  // namespace

TimelineWindow parse_timeline_window(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw InputError(fmt::format(
        "--timeline-window {}: accepted: START:END in seconds after the first arrival", text));
  }
  TimelineWindow window;
  window.start_s = parse_bound(text.substr(0, colon), text, 0);
  window.end_s = parse_bound(text.substr(colon + 1), text, 1e9);
  if (!(window.end_s > window.start_s)) {
    throw InputError(fmt::format("--timeline-window {}: is empty; START must be below END", text));
  }
  return window;
}

TimelineWriter::TimelineWriter(const std::string& path, TimelineWindow window)
    : file_(checked(path)), gzip_(path.ends_with(".gz")), window_(window) {}

StepWatch TimelineWriter::watch(SimTime first_arrival) {
  origin_ = last_ = first_arrival;
  from_ = origin_ + SimTime::from_seconds(window_.start_s);
  until_ = origin_ + SimTime::from_seconds(window_.end_s);
  return {true, from_, until_};
}

void TimelineWriter::add(SimTime at, std::string json) {
  if (events_.size() == kMostEvents) {
    ++dropped_;
  } else {
    events_.push_back({ns_of(at), std::move(json)});
  }
}

void TimelineWriter::on_steps(const StepReport& report) {
  replicas_ = std::max(replicas_, report.replica + 1);
  if (report.steps > 0) last_ = std::max(last_, report.end);
  // Steps that were decided before the window and reach into it come in stretches, without a place
  // for each: they are left out.
  if (report.scheduled < from_ || report.scheduled >= until_) return;
  if (report.steps > 0) add_slice(report);
  add_counter(report.steps > 0 ? std::max(report.begin, report.scheduled) : report.scheduled,
              report.replica, "batch",
              fmt::format(R"("decode":{},"prefill":{})", report.decode_seqs, report.chunks.size()));
  add_counter(report.scheduled, report.replica, "waiting",
              fmt::format(R"("requests":{})", report.waiting));
  const KvUsage& kv = report.kv;
  add_counter(
      report.scheduled, report.replica, "KV tokens",
      fmt::format(R"("used":{},"internal":{},"reserved":{},"external":{})",
                  kv.allocated - kv.internal - kv.reserved, kv.internal, kv.reserved, kv.external));
}

void TimelineWriter::add_slice(const StepReport& report) {
  if (report.begin >= until_) return;
  const std::int64_t prefill = report.prefill_tokens();
  std::string args = fmt::format(
      R"("tokens":{},"decode_seqs":{},"decode_context":{},"prefill_seqs":{},"prefill_tokens":{},)"
      R"("kv_tokens":{},"waiting":{},"scheduled_us":{:.3f})",
      report.decode_tokens + prefill, report.decode_seqs, report.decode_context,
      report.chunks.size(), prefill, report.kv.allocated, report.waiting,
      static_cast<double>(ns_of(report.scheduled)) * 1e-3);
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    if (report.seconds[i] < 0.5e-9) continue;
    args += fmt::format(R"(,"{}_us":{:.3f})", kComponentNames[i], report.seconds[i] * 1e6);
  }
  if (report.flops > 0) {
    args += fmt::format(R"(,"gflops":{:.3f},"hbm_mb":{:.3f})", report.flops * 1e-9,
                        report.hbm_bytes * 1e-6);
  }
  const auto slice = [&](int thread, SimTime begin, SimTime end, const std::string& with) {
    if (begin >= until_) return;
    add(begin,
        fmt::format(
            R"("ph":"X","name":"{}","cat":"step","pid":{},"tid":{},"dur":{:.3f},"args":{{{}}})",
            kind_of(report), process_of(report.replica), thread,
            static_cast<double>((end - begin).ns()) * 1e-3, with));
  };
  if (report.stages.empty()) slice(kStepThread, report.begin, report.end, args);
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    // What the step is and takes in all stages stands once, with the first.
    slice(kStepThread + static_cast<int>(i), report.stages[i].begin, report.stages[i].end,
          i == 0 ? args : fmt::format(R"("tokens":{})", report.decode_tokens + prefill));
  }
  stages_ = std::max(stages_, static_cast<int>(report.stages.size()));
}

/// Only changes are written: a counter holds until the next.
void TimelineWriter::add_counter(SimTime at, std::int32_t replica, std::string_view name,
                                 std::string args) {
  std::string& last = counters_[{replica, std::string(name)}];
  if (last == args) return;
  add(at, fmt::format(R"("ph":"C","name":"{}","pid":{},"args":{{{}}})", name, process_of(replica),
                      args));
  last = std::move(args);
}

void TimelineWriter::on_preempted(std::uint64_t index, SimTime at) {
  if (at < until_) inner_[index].push_back({at, SimTime::max(), "preempted", ""});
}

void TimelineWriter::on_resumed(std::uint64_t index, SimTime at) {
  const auto found = inner_.find(index);
  if (found == inner_.end()) return;
  for (Span& span : found->second) {
    if (span.end == SimTime::max()) span.end = at;
  }
}

void TimelineWriter::on_transfer(const TransferReport& report) {
  if (!overlaps(report.begin, report.end)) return;
  inner_[report.index].push_back(
      {report.begin, report.end, "KV transfer", fmt::format(R"("bytes":{:.0f})", report.bytes)});
}

/// Transfers overlap: their rates add up, and what is told last may have begun first.
void TimelineWriter::on_link(const LinkReport& report) {
  if (!overlaps(report.begin, report.end) || report.end <= report.begin) return;
  has_links_ = true;
  const double rate = report.bytes / (report.end - report.begin).seconds();
  std::vector<RateChange>& changes = links_[std::string(report.link)];
  changes.push_back({clipped(report.begin), rate});
  changes.push_back({clipped(report.end), -rate});
}

void TimelineWriter::add_link_counters() {
  for (auto& [link, changes] : links_) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const RateChange& a, const RateChange& b) { return a.at < b.at; });
    double rate = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      rate += changes[i].bytes_per_s;
      if (i + 1 < changes.size() && changes[i + 1].at == changes[i].at) continue;
      constexpr double kNothing = 1e-3;  // what rounding leaves of sums of bytes per second
      add(changes[i].at,
          fmt::format(R"("ph":"C","name":{},"pid":{},"args":{{"GB/s":{:.6f}}})", json_text(link),
                      kLinkProcess, rate < kNothing ? 0 : rate * 1e-9));
    }
  }
}

void TimelineWriter::on_request(const RequestRecord& record) {
  const auto found = inner_.find(record.index);
  const std::vector<Span> inner = found == inner_.end() ? std::vector<Span>() : found->second;
  if (found != inner_.end()) inner_.erase(found);
  if (record.status != RequestStatus::kCompleted) return;
  last_ = std::max(last_, record.last_token);
  if (!overlaps(record.arrival, record.last_token)) return;
  const std::string name = record.id.empty() ? fmt::format("request {}", record.index)
                                             : fmt::format("request {}", record.id);
  std::vector<Span> spans{
      {record.arrival, record.last_token, name,
       fmt::format(
           R"("index":{},"input_tokens":{},"output_tokens":{},"prefix_hit_tokens":{},"preemptions":{},)"
           R"("queue_ms":{:.6f},"ttft_ms":{:.6f},"e2el_ms":{:.6f})",
           record.index, record.input_tokens, record.generated_tokens, record.prefix_hit_tokens,
           record.preemptions, (record.scheduled - record.arrival).ms(),
           (record.first_token - record.arrival).ms(), (record.last_token - record.arrival).ms())},
      {record.arrival, record.scheduled, "queued", ""},
      {record.scheduled, record.first_token, "prefill", ""},
      {record.first_token, record.last_token, "decode", ""}};
  for (std::size_t phase = 1; phase <= 3; ++phase) {  // what spans two phases is cut in two
    const Span outer = spans[phase];
    for (const Span& span : inner) {
      const SimTime begin = std::max(span.begin, outer.begin);
      const SimTime end = std::min(span.end, outer.end);
      if (begin < end) spans.push_back({begin, end, span.name, span.args});
    }
  }
  add_nested(record.replica, record.index, spans);
}

/// Begin and end events of spans that nest, in an order in which each end closes the last begin.
void TimelineWriter::add_nested(std::int32_t replica, std::uint64_t index,
                                const std::vector<Span>& spans) {
  std::vector<Span> visible;
  for (const Span& span : spans) {
    if (!overlaps(span.begin, span.end)) continue;
    visible.push_back({clipped(span.begin), clipped(span.end), span.name, span.args});
  }
  std::stable_sort(visible.begin(), visible.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<Span> open;
  const auto emit = [&](char phase, SimTime at, const Span& span) {
    const std::string args = span.args.empty() || phase == 'e'
                                 ? std::string()
                                 : fmt::format(R"(,"args":{{{}}})", span.args);
    add(at, fmt::format(R"("ph":"{}","cat":"request","id":"{}","name":{},"pid":{},"tid":0{})",
                        phase, index, json_text(span.name), process_of(replica), args));
  };
  const auto close_until = [&](SimTime at) {
    while (!open.empty() && open.back().end <= at) {
      emit('e', open.back().end, open.back());
      open.pop_back();
    }
  };
  if (events_.size() + 2 * visible.size() > kMostEvents) {  // whole or not at all
    dropped_ += 2 * visible.size();
    return;
  }
  for (const Span& span : visible) {
    close_until(span.begin);
    emit('b', span.begin, span);
    open.push_back(span);
    if (open.size() > 1) open.back().end = std::min(span.end, open[open.size() - 2].end);
  }
  close_until(SimTime::max());
}

std::string TimelineWriter::preamble(const std::string& title, const std::string& command) const {
  std::string text = fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"generator":"servesim","run":{},"command":{},)"
      R"("window_s":"{}:{}"}},)"
      "\n\"traceEvents\":[\n",
      json_text(title), json_text(command), window_.start_s, window_.end_s);
  const auto name = [&text](std::string_view what, int process, int thread,
                            std::string_view value) {
    text += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}},)"
                        "\n",
                        what, process, thread, json_text(value));
  };
  const auto name_process = [&](int process, std::string_view value, int order) {
    name("process_name", process, 0, value);
    text += fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"ts":0,"args":{{"sort_index":{}}}}},)"
        "\n",
        process, order);
  };
  if (has_links_) name_process(kLinkProcess, "links", replicas_);
  for (std::int32_t replica = 0; replica < replicas_; ++replica) {
    name_process(process_of(replica), fmt::format("replica {}", replica), replica);
    if (stages_ == 0) name("thread_name", process_of(replica), kStepThread, "steps");
    for (int stage = 0; stage < stages_; ++stage) {
      name("thread_name", process_of(replica), kStepThread + stage, fmt::format("stage {}", stage));
    }
  }
  return text;
}

void TimelineWriter::finish(const std::string& title, const std::string& command) {
  add_link_counters();
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.ns < b.ns; });
  TextSink sink(file_, gzip_);
  std::string text = preamble(title, command);
  constexpr std::size_t kPiece = 1 << 16;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    text += fmt::format("{{\"ts\":{:.3f},{}}}{}\n", static_cast<double>(events_[i].ns) * 1e-3,
                        events_[i].json, i + 1 < events_.size() ? "," : "");
    if (text.size() < kPiece) continue;
    sink.write(text);
    text.clear();
  }
  if (events_.empty() && text.ends_with(",\n")) text.erase(text.size() - 2);
  sink.write(text + "]}\n");
  sink.finish();
}

std::string TimelineWriter::warning() const {
  const double run_s = (last_ - origin_).seconds();
  const double end_s = std::min(window_.end_s, run_s);
  std::string text;
  if (dropped_ > 0) {
    text = fmt::format(
        "the timeline holds {} events and leaves out {} more within {:g}:{:g} s; a narrower "
        "--timeline-window START:END has them all",
        events_.size(), dropped_, window_.start_s, end_s);
  } else if (window_.start_s >= run_s) {
    text = fmt::format(
        "the timeline is empty: --timeline-window begins at {:g} s, and the run ends at "
        "{:.3f} s",
        window_.start_s, run_s);
  } else if (window_.start_s > 0 || window_.end_s < run_s) {
    text = fmt::format(
        "the timeline holds {:g}:{:g} s of a run of {:.3f} s; --timeline-window START:END chooses",
        window_.start_s, end_s, run_s);
  }
  return text;
}

}  // namespace servesim
