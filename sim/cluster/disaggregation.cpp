#include "cluster/disaggregation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cluster/new_sequence.hpp"
#include "engine/step_report.hpp"

namespace servesim {
namespace {

/// What sums of shares of bytes may be off by.
constexpr double kLessThanAByte = 0.5;

/// How long a prefill replica keeps blocks that nobody reads (vLLM's
/// VLLM_NIXL_ABORT_REQUEST_TIMEOUT). Without it, the two pools can wait for each other's blocks for
/// ever.
constexpr SimTime kKeptFor = SimTime::from_ms(480'000);

}  // namespace

Disaggregation::Disaggregation(const DisaggregatedConfig& config, SimTime prefill_front_after,
                               std::size_t prefill_replicas, std::unique_ptr<Router> decode_router,
                               std::vector<std::unique_ptr<Replica>>& replicas,
                               std::vector<ReplicaLoad>& loads, ReplicaClock& clock)
    : config_(config),
      prefill_front_after_(prefill_front_after),
      prefill_replicas_(prefill_replicas),
      router_(std::move(decode_router)),
      replicas_(replicas),
      loads_(loads),
      clock_(clock),
      network_(*config.topology) {}

void Disaggregation::reschedule(std::size_t replica) {
  clock_.set(replica, replicas_[replica]->next_event());
}

void Disaggregation::begin(NewSequence& sequence, const Request& request, std::size_t prefill,
                           SimTime now) {
  if (transfers_.size() <= sequence.ticket) transfers_.resize(sequence.ticket + 1);
  Transfer& transfer = transfers_[sequence.ticket];
  const std::uint32_t generation = transfer.generation + 1;
  transfer = Transfer{};
  transfer.generation = generation;
  transfer.live = true;
  transfer.request = request;
  transfer.session = sequence.session;
  transfer.prefill = prefill;
  transfer.last_block = BlockSize(config_.scheduler.block_size).covering(request.input_tokens);
  sequence.max_tokens = 1;
  sequence.kv_role = config_.push ? KvRole::kPush : KvRole::kSend;
  if (config_.push) hand_over(sequence.ticket, now);
}

bool Disaggregation::prefill_ended(Ticket ticket, const SequenceOutcome& outcome) {
  Transfer& transfer = transfers_[ticket];
  if (transfer.phase != Phase::kPrefill) return false;
  transfer.phase = config_.push ? Phase::kDecode : Phase::kHandOver;
  transfer.prefill_outcome = outcome;
  transfer.kept = true;
  kept_.push_back({ticket, transfer.generation, outcome.last_token + kKeptFor});
  loads_[transfer.prefill].add(-1, -transfer.request.input_tokens);
  if (!config_.push) {
    push_due(DueKind::kHandOver, ticket,
             outcome.last_token + prefill_front_after_ + config_.host.front_before);
  } else if (all_landed(transfer)) {
    push_due(DueKind::kComplete, ticket, outcome.last_token);
  }
  return true;
}

SequenceOutcome Disaggregation::decode_ended(Ticket ticket, SequenceOutcome outcome) {
  Transfer& transfer = transfers_[ticket];
  transfer.live = false;
  return with_prefill(transfer, outcome);
}

SequenceOutcome Disaggregation::with_prefill(const Transfer& transfer, SequenceOutcome outcome) {
  if (transfer.prefill_outcome.outputs == 0) return outcome;  // given up, and computed here
  outcome.scheduled = transfer.prefill_outcome.scheduled;
  outcome.prefix_hit_tokens = transfer.prefill_outcome.prefix_hit_tokens;
  outcome.preemptions += transfer.prefill_outcome.preemptions;
  return outcome;
}

void Disaggregation::push_due(DueKind kind, Ticket ticket, SimTime at, double bytes) {
  due_.push(at, EventClass::kTransferDone, {kind, ticket, transfers_[ticket].generation, bytes});
}

/// Sends the request to a decode replica.
void Disaggregation::hand_over(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  const Request& request = transfer.request;
  const auto loads = std::span<const ReplicaLoad>(loads_).subspan(prefill_replicas_);
  if (!any_up(loads)) {
    held_.push_back(ticket);
    transfer.decode = kNowhere;
    return;
  }
  transfer.decode = prefill_replicas_ + router_->route(request, loads);
  if (!config_.push) {
    transfer.phase = Phase::kDecode;
    transfer.ready = static_cast<double>(transfer.last_block) * block_bytes();
  }
  loads_[transfer.decode].add(1, request.input_tokens + request.output_tokens);
  NewSequence sequence = new_sequence(request, ticket, transfer.session, now);
  sequence.kv_role = transfer.failed ? KvRole::kLocal : KvRole::kReceive;
  replicas_[transfer.decode]->add(sequence, now);
  reschedule(transfer.decode);
}

void Disaggregation::kv_wanted(Ticket ticket, std::int64_t cached, std::int64_t blocks,
                               SimTime now) {
  Transfer& transfer = transfers_[ticket];
  transfer.wanted = true;
  transfer.wanted_since = now;
  transfer.first_block = transfer.last_block - blocks;
  stats_.cached_tokens += cached;
  send_what_is_ready(ticket, now);
}

void Disaggregation::kv_planned(Ticket ticket, std::int64_t upto) {
  Transfer& transfer = transfers_[ticket];
  const std::int64_t size = config_.scheduler.block_size;
  const std::int64_t blocks =
      upto >= transfer.request.input_tokens ? transfer.last_block : upto / size;
  if (blocks <= transfer.planned) return;  // computed again after a preemption
  planned_.push_back({ticket, blocks - transfer.planned});
  transfer.planned = blocks;
}

void Disaggregation::step_launched(SimTime begin, SimTime end) {
  const SimTime first_layer = begin + SimTime((end - begin).ns() / config_.layers);
  const double last_share = 1.0 / static_cast<double>(config_.layers);
  for (const Planned& planned : planned_) {
    const double bytes = static_cast<double>(planned.blocks) * block_bytes();
    const double last = bytes * last_share;
    if (config_.layers > 1) {
      push_due(DueKind::kComputed, planned.ticket, first_layer, bytes - last);
    }
    push_due(DueKind::kComputed, planned.ticket, end, last);
  }
  planned_.clear();
}

void Disaggregation::send_what_is_ready(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  if (!transfer.wanted || transfer.failed) return;
  const double wanted = transfer.ready - static_cast<double>(transfer.first_block) * block_bytes();
  const double bytes = wanted - transfer.sent;
  if (bytes <= kLessThanAByte) return;
  if (transfer.sent == 0) transfer.first_flow = now;
  transfer.sent += bytes;
  const std::vector<VertexId>& from = config_.ports[transfer.prefill];
  const std::vector<VertexId>& to = config_.ports[transfer.decode];
  const std::size_t flows = std::max(from.size(), to.size());
  for (std::size_t i = 0; i < flows; ++i) {
    const VertexId source = from[i * from.size() / flows];
    const VertexId target = to[i * to.size() / flows];
    const auto flow =
        network_.start(source, target, bytes / static_cast<double>(flows), ticket, now);
    if (!flow) {
      push_due(DueKind::kFailed, ticket, now);
      return;
    }
    transfer.flows.push_back(*flow);
  }
}

SimTime Disaggregation::next_event() {
  const SimTime due = due_.empty() ? SimTime::max() : due_.top().time;
  return std::min({network_.next_event(), due, next_expiry()});
}

/// When the first of the kept blocks expire.
SimTime Disaggregation::next_expiry() {
  const auto gone = [this](const Kept& kept) {
    const Transfer& transfer = transfers_[kept.ticket];
    return transfer.generation != kept.generation || !transfer.live || !transfer.kept;
  };
  while (!kept_.empty() && gone(kept_.front())) kept_.pop_front();
  return kept_.empty() ? SimTime::max() : kept_.front().until;
}

void Disaggregation::act(SimTime now) {
  while (!due_.empty() && due_.top().time <= now) {
    const Due due = due_.top().payload;
    due_.pop();
    if (transfers_[due.ticket].generation != due.generation || !transfers_[due.ticket].live)
      continue;
    switch (due.kind) {
      case DueKind::kHandOver:
        hand_over(due.ticket, now);
        break;
      case DueKind::kComputed:
        transfers_[due.ticket].ready += due.bytes;
        send_what_is_ready(due.ticket, now);
        break;
      case DueKind::kComplete:
        complete(due.ticket, now);
        break;
      case DueKind::kFailed:
        fail(due.ticket, now);
        break;
    }
  }
  while (const auto done = network_.take(now)) flow_landed(*done, now);
  while (next_expiry() <= now) {
    const Ticket ticket = kept_.front().ticket;
    kept_.pop_front();
    fail(ticket, now);
  }
}

void Disaggregation::flow_landed(const FlowDone& done, SimTime now) {
  const auto ticket = static_cast<Ticket>(done.tag);
  Transfer& transfer = transfers_[ticket];
  std::erase(transfer.flows, done.flow);
  stats_.kv_bytes += done.bytes;
  if (observer_ != nullptr) report_flow(done);
  // The end of the step that computed the last of it is yet to be taken in.
  if (transfer.phase != Phase::kPrefill && all_landed(transfer)) complete(ticket, now);
}

void Disaggregation::report_flow(const FlowDone& done) {
  for (const ArcId arc : done.path) {
    const Link& link = config_.topology->links()[link_of(arc)];
    constexpr double kBothWays = 2;  // as `utilization` in the result counts
    observer_->on_link({link.name, done.begin, done.end, done.bytes, kBothWays * link.bytes_per_s});
  }
}

bool Disaggregation::all_landed(const Transfer& transfer) const {
  const double all =
      static_cast<double>(transfer.last_block - transfer.first_block) * block_bytes();
  return transfer.wanted && transfer.flows.empty() && transfer.sent >= all - kLessThanAByte;
}

void Disaggregation::complete(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  ++stats_.transfers;
  stats_.transfer_ms.push_back(static_cast<float>((now - transfer.first_flow).ms()));
  stats_.wait_ms.push_back(static_cast<float>((now - transfer.wanted_since).ms()));
  if (observer_ != nullptr) {
    const auto blocks = static_cast<double>(transfer.last_block - transfer.first_block);
    observer_->on_transfer({transfer.request.index, static_cast<std::int32_t>(transfer.decode),
                            transfer.first_flow, now, blocks * block_bytes()});
  }
  replicas_[transfer.decode]->kv_arrived(ticket, now);
  reschedule(transfer.decode);
  release(ticket, now);
}

/// The prefill replica's blocks are needed no more.
void Disaggregation::release(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  transfer.kept = false;
  replicas_[transfer.prefill]->release_kv(ticket, now);
  reschedule(transfer.prefill);
}

KvTransferStats Disaggregation::stats(SimTime now) const {
  KvTransferStats result = stats_;
  const std::vector<LinkStats> links = network_.stats(now);
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].flows == 0) continue;
    const Link& link = config_.topology->links()[i];
    result.links.push_back({link.name, link.bytes_per_s, links[i]});
  }
  return result;
}

}  // namespace servesim
