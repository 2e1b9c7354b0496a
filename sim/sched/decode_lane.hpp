/// Sequences that get a token in the same steps.
#pragma once

#include <cstdint>

#include "sched/completion_wheel.hpp"
#include "sched/decode_group.hpp"

namespace servesim {

/// With a pipeline, each batch in flight has decodes of its own: a sequence waits for its last
/// token until its own batch has left the last stage, and the next step that is scheduled takes it
/// up again. A lane counts only the steps of its own members, so that they are a DecodeGroup.
/// Without a pipeline there is one lane, and its steps are all steps.
struct DecodeLane {
  DecodeLane(BlockSize block_size, SequenceStore& store) : group(block_size), completions(store) {}

  DecodeGroup group;
  CompletionWheel completions;  ///< of the group, by the lane's steps
  std::int64_t step = 0;        ///< planned for this lane so far
  std::int64_t planned_as = 0;  ///< the last of them among the steps of all lanes
  bool busy = false;            ///< its last step is in flight; kept with a pipeline only
  SimTime last_done;            ///< when the results taken in last had come
};

}  // namespace servesim
