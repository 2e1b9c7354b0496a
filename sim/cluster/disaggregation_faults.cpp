// What becomes of requests whose replicas, links or clients give up.
#include <algorithm>
#include <utility>

#include "cluster/disaggregation.hpp"

namespace servesim {

void Disaggregation::cancel_flows(Transfer& transfer, SimTime now) {
  for (const FlowId flow : transfer.flows) network_.cancel(flow, now);
  transfer.flows.clear();
}

/// The KV will not come: the decode replica computes the prompt itself (vLLM's
/// kv_load_failure_policy "recompute").
void Disaggregation::fail(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  if (transfer.failed) return;
  transfer.failed = true;
  ++failed_;
  cancel_flows(transfer, now);
  if (transfer.phase == Phase::kPrefill) {  // pushing: what is left of the prefill is of no use
    replicas_[transfer.prefill]->abort(ticket, now);
    reschedule(transfer.prefill);
    loads_[transfer.prefill].add(-1, -transfer.request.input_tokens);
    transfer.phase = Phase::kDecode;
  } else if (transfer.kept) {
    release(ticket, now);
  }
  if (transfer.phase == Phase::kHandOver || transfer.decode == kNowhere) return;
  replicas_[transfer.decode]->kv_failed(ticket, now);
  reschedule(transfer.decode);
}

/// The decode replica, which is up, forgets the request.
SequenceOutcome Disaggregation::take_from_decode(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  std::erase(held_, ticket);
  if (transfer.decode == kNowhere) return {};
  const SequenceOutcome outcome = replicas_[transfer.decode]->abort(ticket, now);
  reschedule(transfer.decode);
  loads_[transfer.decode].add(-1, -transfer.request.input_tokens - transfer.request.output_tokens);
  return outcome;
}

/// The decode replica is gone, and the KV is still where it was computed.
void Disaggregation::find_another_decode(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  transfer.wanted = false;
  transfer.sent = 0;
  hand_over(ticket, now);
}

std::vector<Ticket> Disaggregation::replica_down(std::size_t replica, SimTime now) {
  std::vector<Ticket> anew;
  if (replica >= prefill_replicas_) router_->forget(replica - prefill_replicas_);
  for (Ticket ticket = 0; ticket < transfers_.size(); ++ticket) {
    Transfer& transfer = transfers_[ticket];
    if (!transfer.live) continue;
    const bool prefills = transfer.phase == Phase::kPrefill;
    if (transfer.prefill == replica && prefills) {
      cancel_flows(transfer, now);
      if (config_.push) take_from_decode(ticket, now);
      anew.push_back(ticket);
    } else if (transfer.prefill == replica && transfer.kept) {
      transfer.kept = false;
      fail(ticket, now);
    } else if (transfer.decode == replica && (prefills || transfer.phase == Phase::kDecode)) {
      cancel_flows(transfer, now);
      if ((transfer.kept || prefills) && !transfer.failed) {
        find_another_decode(ticket, now);
      } else {
        anew.push_back(ticket);
      }
    }
  }
  for (const Ticket ticket : anew) {
    transfers_[ticket].live = false;
    ++transfers_[ticket].generation;
  }
  return anew;
}

void Disaggregation::replica_up(SimTime now) {
  const std::vector<Ticket> held = std::exchange(held_, {});
  for (const Ticket ticket : held) hand_over(ticket, now);
}

void Disaggregation::set_bandwidth(LinkId link, double share, SimTime now) {
  for (const std::uint64_t tag : network_.set_bandwidth(link, share, now)) {
    const auto ticket = static_cast<Ticket>(tag);
    // The flows that are lost are no more to be cancelled.
    std::erase_if(transfers_[ticket].flows, [&](FlowId flow) { return !network_.is_live(flow); });
    fail(ticket, now);
  }
}

SequenceOutcome Disaggregation::abandon(Ticket ticket, SimTime now) {
  Transfer& transfer = transfers_[ticket];
  SequenceOutcome outcome;
  cancel_flows(transfer, now);
  if (transfer.phase == Phase::kPrefill) {
    outcome = replicas_[transfer.prefill]->abort(ticket, now);
    outcome.outputs = 0;  // no client sees the token of a prefill
    reschedule(transfer.prefill);
    loads_[transfer.prefill].add(-1, -transfer.request.input_tokens);
    if (config_.push) take_from_decode(ticket, now);
  } else {
    if (transfer.phase == Phase::kDecode) outcome = take_from_decode(ticket, now);
    outcome = with_prefill(transfer, outcome);
    std::erase(held_, ticket);
    if (transfer.kept) release(ticket, now);
  }
  transfer.live = false;
  ++transfer.generation;
  return outcome;
}

}  // namespace servesim
