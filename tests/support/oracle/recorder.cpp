#include "support/oracle/recorder.hpp"

#include <algorithm>

#include "support/oracle/oracle.hpp"

namespace servesim::oracle {

namespace {

// A sequence that thrashes recomputes itself for every token; far beyond that, the loop is endless.
constexpr std::int64_t kStepsForTheStart = 10'000;
constexpr std::int64_t kStepsPerToken = 50;

}  // namespace

Recorder::Recorder(const std::vector<Request>& requests) : requests_(requests) {
  result_.outcomes.resize(requests.size());
  std::int64_t tokens = 0;
  for (const Request& request : requests) {
    tokens += request.prompt_len + request.output_len;
  }
  max_steps_ = static_cast<std::size_t>(kStepsForTheStart + kStepsPerToken * tokens);
}

void Recorder::reject(std::size_t request, const std::string& reason) {
  outcome(request).status = Status::kRejected;
  outcome(request).reject_reason = reason;
}

void Recorder::add_step(const StepPlan& plan, const StepResults& results, std::int64_t start_ns,
                        std::int64_t done_ns) {
  if (result_.steps.size() >= max_steps_) {
    throw NoProgress("the run does not come to an end");
  }
  ensure(start_ns <= done_ns, "a step ends before it starts");
  LoggedStep line;
  line.step = static_cast<std::int64_t>(result_.steps.size()) + 1;
  line.t_ns = start_ns;
  for (const StepEntry& entry : plan.entries) {
    const std::string& id = requests_[entry.sequence].id;
    line.scheduled.emplace_back(id, entry.tokens);
    if (entry.drafts > 0) {
      line.drafts[id] = entry.drafts;
    }
  }
  line.admitted = ids(plan.admitted);
  line.resumed = ids(plan.resumed);
  line.preempted = ids(plan.preempted);
  line.prefix_hit_tokens = by_id(plan.prefix_hit_tokens);
  line.free_blocks = plan.free_blocks;
  line.running = ids(plan.running);
  line.waiting = ids(plan.waiting);
  line.tokens_out = by_id(results.tokens_out);
  line.accepted = by_id(results.accepted);
  line.finished = ids(results.finished);
  line.done_ns = done_ns;
  line.free_blocks_after = results.free_blocks_after;
  note_outcomes(plan, results, line);
  result_.steps.push_back(std::move(line));
}

void Recorder::note_outcomes(const StepPlan& plan, const StepResults& results,
                             const LoggedStep& line) {
  for (const std::size_t request : plan.admitted) {
    outcome(request).admit_ns = line.t_ns;
    outcome(request).first_prefix_hit_tokens = plan.prefix_hit_tokens.at(request);
  }
  for (const auto& [request, tokens] : plan.prefix_hit_tokens) {
    outcome(request).total_prefix_hit_tokens += tokens;
  }
  for (const auto& [request, tokens] : results.tokens_out) {
    std::vector<std::int64_t>& times = outcome(request).token_ns;
    times.insert(times.end(), static_cast<std::size_t>(tokens), line.done_ns);
    outcome(request).first_token_ns = times.front();
  }
  for (const std::size_t request : results.finished) {
    outcome(request).status = Status::kCompleted;
    outcome(request).finish_ns = line.done_ns;
  }
}

Result Recorder::finish(const Config& config) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Outcome& done = outcome(i);
    if (done.status == Status::kRejected) {
      ensure(done.token_ns.empty(), "a rejected request got tokens");
      continue;
    }
    const std::int64_t outputs = final_length(config, requests_[i]) - requests_[i].prompt_len;
    ensure(done.status == Status::kCompleted, "a request was left unfinished");
    ensure(static_cast<std::int64_t>(done.token_ns.size()) == outputs, "tokens are missing");
    ensure(std::is_sorted(done.token_ns.begin(), done.token_ns.end()), "time went back");
    ensure(requests_[i].arrival_ns <= done.admit_ns && done.admit_ns <= done.first_token_ns &&
               done.first_token_ns <= done.finish_ns,
           "a request's times are out of order");
  }
  return std::move(result_);
}

std::vector<std::string> Recorder::ids(const std::vector<std::size_t>& indices) const {
  std::vector<std::string> names;
  for (const std::size_t index : indices) {
    names.push_back(requests_[index].id);
  }
  return names;
}

std::map<std::string, std::int64_t> Recorder::by_id(
    const std::map<std::size_t, std::int64_t>& map) const {
  std::map<std::string, std::int64_t> named;
  for (const auto& [index, value] : map) {
    named[requests_[index].id] = value;
  }
  return named;
}

std::vector<ScheduledWork> work_of(const StepPlan& plan) {
  std::vector<ScheduledWork> work;
  for (const StepEntry& entry : plan.entries) {
    work.push_back(
        {entry.sequence, entry.tokens, entry.context, !entry.prefill_chunk, entry.drafts});
  }
  return work;
}

}  // namespace servesim::oracle
