#include "report/schedule_log_writer.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace servesim {

const std::string& ScheduleLogWriter::name(Ticket ticket) {
  if (ticket >= quoted_.size()) quoted_.resize(names_.size());
  std::string& quoted = quoted_.at(ticket);
  if (quoted.empty()) {
    quoted = nlohmann::json(names_[ticket])
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return quoted;
}

void ScheduleLogWriter::add_ids(std::string_view key, const std::vector<Ticket>& tickets) {
  fmt::format_to(std::back_inserter(line_), ",\"{}\":[", key);
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    if (i > 0) line_ += ',';
    line_ += name(tickets[i]);
  }
  line_ += ']';
}

void ScheduleLogWriter::add_pairs(std::string_view key, const LoggedStep::Counts& counts) {
  fmt::format_to(std::back_inserter(line_), ",\"{}\":[", key);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    fmt::format_to(std::back_inserter(line_), "{}[{},{}]", i > 0 ? "," : "", name(counts[i].first),
                   counts[i].second);
  }
  line_ += ']';
}

void ScheduleLogWriter::add_counts(std::string_view key, const LoggedStep::Counts& counts) {
  fmt::format_to(std::back_inserter(line_), ",\"{}\":{{", key);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    fmt::format_to(std::back_inserter(line_), "{}{}:{}", i > 0 ? "," : "", name(counts[i].first),
                   counts[i].second);
  }
  line_ += '}';
}

void ScheduleLogWriter::add_time(std::string_view key, SimTime time) {
  constexpr std::int64_t kNsPerUs = 1000;
  const std::int64_t ns = time.ns();
  fmt::format_to(std::back_inserter(line_), ",\"{}\":{}", key, ns / kNsPerUs);
  if (ns % kNsPerUs != 0) fmt::format_to(std::back_inserter(line_), ".{:03}", ns % kNsPerUs);
}

void ScheduleLogWriter::on_step(const LoggedStep& step) {
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{{\"step\":{}", step.step);
  add_time("t_us", step.time);
  add_pairs("scheduled", step.scheduled);
  add_ids("admitted", step.admitted);
  add_ids("resumed", step.resumed);
  add_ids("preempted", step.preempted);
  add_counts("prefix_hit_tokens", step.prefix_hit_tokens);
  add_counts("drafts", step.drafts);
  fmt::format_to(std::back_inserter(line_), ",\"free_blocks\":{}", step.free_blocks);
  add_ids("running", step.running);
  add_ids("waiting", step.waiting);
  add_counts("tokens_out", step.tokens_out);
  if (!step.drafts.empty()) add_counts("accepted", step.accepted);
  add_ids("finished", step.finished);
  add_time("done_us", step.done);
  fmt::format_to(std::back_inserter(line_), ",\"free_blocks_after\":{}}}\n",
                 step.free_blocks_after);
  file_.write(line_);
}

}  // namespace servesim
