/// The aggregates of the decode group and its timing wheel against loops over the members.
#include "sched/decode_group.hpp"
#include "core/rng.hpp"
#include "sched/completion_wheel.hpp"
#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("sums and block demand follow from the step number") {
  for (const std::int64_t size : {1, 3, 16}) {
    DecodeGroup group{BlockSize(size)};
    Rng rng(1, "test");
    std::vector<std::int64_t> bases;
    for (std::int64_t step = 1; step < 200; ++step) {
      if (rng.below(3) == 0) {
        bases.push_back(static_cast<std::int64_t>(rng.below(500)) - step);
        group.join(bases.back());
      } else if (!bases.empty() && rng.below(4) == 0) {
        group.leave(bases.back());
        bases.pop_back();
      }
      std::int64_t context = 0;
      std::int64_t growth = 0;
      for (const std::int64_t base : bases) {
        const std::int64_t computed = base + step - 1;
        context += computed;
        const bool grows = ((computed % size) + size) % size == 0;
        growth += grows ? 1 : 0;
        CHECK(group.grows(base, step) == grows);
      }
      CHECK(group.count() == std::ssize(bases));
      CHECK(group.context(step) == context);
      CHECK(group.growth(step) == growth);
    }
  }
}

TEST_CASE("members grow by as many slots and blocks as groups of layers keep their tokens") {
  struct Member {
    std::int64_t base, growth;
  };
  for (const std::int64_t size : {1, 3, 16}) {
    DecodeGroup group{BlockSize(size)};
    Rng rng(3, "test");
    std::vector<Member> members;
    for (std::int64_t step = 1; step < 200; ++step) {
      if (rng.below(3) == 0) {
        const auto computed = static_cast<std::int64_t>(rng.below(500));
        members.push_back({computed - step, static_cast<std::int64_t>(rng.below(4))});
        group.join(members.back().base, members.back().growth);
      } else if (!members.empty() && rng.below(4) == 0) {
        group.leave(members.back().base, members.back().growth);
        members.pop_back();
      }
      std::int64_t slots = 0;
      const auto blocks_in = [&](std::int64_t at) {
        std::int64_t blocks = 0;
        for (const Member& m : members) blocks += (m.base + at - 1) % size == 0 ? m.growth : 0;
        return blocks;
      };
      for (const Member& m : members) slots += m.growth;
      CHECK(group.count() == std::ssize(members));
      CHECK(group.slots() == slots);
      CHECK(group.growth(step) == blocks_in(step));
      if (slots == 0) continue;
      std::int64_t left = static_cast<std::int64_t>(rng.below(60));
      const std::int64_t lasting = group.steps_within(left, step);
      std::int64_t steps = 0;
      while (left >= blocks_in(step + steps + 1)) left -= blocks_in(step + ++steps);
      CHECK(lasting == steps);
    }
    for (const Member& m : members) group.leave(m.base, m.growth);
    group.join(-7, 0);
    CHECK(group.growth(8) == 0);
    CHECK(group.steps_within(0, 8) == DecodeGroup::kForever);
  }
}

TEST_CASE("steps_within counts how long free blocks last") {
  DecodeGroup group{BlockSize(4)};
  for (const std::int64_t base : {0, 1, 1, 3, 7}) group.join(base);
  for (std::int64_t step = 1; step < 6; ++step) {
    for (std::int64_t free = 0; free < 30; ++free) {
      std::int64_t left = free;
      std::int64_t steps = 0;
      while (left >= group.growth(step + steps + 1)) left -= group.growth(step + ++steps);
      CHECK(group.steps_within(free, step) == steps);
    }
  }
}

TEST_CASE("the wheel finds the next completion, also more than a turn ahead") {
  SequenceStore store;
  CompletionWheel wheel(store);
  Rng rng(2, "test");
  std::vector<SeqId> members;
  for (std::int64_t step = 1; step < 30'000; step += static_cast<std::int64_t>(rng.below(50))) {
    for (std::size_t i = 0; i < members.size();) {
      if (store[members[i]].due_step < step) {
        wheel.take(members[i]);
        store.destroy(members[i]);
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    const SeqId id = store.create();
    store[id].due_step =
        step + static_cast<std::int64_t>(rng.below(rng.below(2) == 0 ? 100 : 20'000));
    wheel.put(id);
    members.push_back(id);
    std::int64_t expected = step + 4096;
    for (const SeqId member : members) expected = std::min(expected, store[member].due_step);
    CHECK(wheel.next(step) == expected);
    CHECK((wheel.due(step) != kNoSeq) == (expected == step));
  }
}
