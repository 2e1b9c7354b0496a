/// A request of the trace as a scheduler is told of it.
#pragma once

#include "sched/sequence.hpp"
#include "workload/request.hpp"

namespace servesim {

/// `arrival` is when it reaches the scheduler. Views of `request` stay views.
inline NewSequence new_sequence(const Request& request, Ticket ticket, std::int64_t session,
                                SimTime arrival) {
  NewSequence sequence;
  sequence.ticket = ticket;
  sequence.index = request.index;
  sequence.id = request.id;
  sequence.prompt = request.input_tokens;
  sequence.max_tokens = request.output_tokens;
  sequence.priority = request.priority;
  sequence.arrival = arrival;
  sequence.hash_block = request.hash_block;
  sequence.hash_ids = request.hash_ids;
  sequence.session = session;
  return sequence;
}

}  // namespace servesim
