/// How layers with and without a window share the pool: vLLM's groups, and what a sequence holds.
#include "kv/layer_groups.hpp"
#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("as many layers to a group as there are of the rarer kind") {
  struct Expected {
    std::int64_t full_layers, windowed_layers, size, full, windowed;
  };
  for (const Expected& e : {Expected{0, 32, 32, 0, 1},   // Mistral 7B v0.1
                            Expected{18, 18, 18, 1, 1},  // gpt-oss-120b
                            Expected{10, 52, 10, 1, 6},  // Gemma 3 27B: 8 layers of padding
                            Expected{13, 12, 13, 1, 1},  // one layer of padding
                            Expected{20, 30, 20, 1, 2},  // half again as many: not yet
                            Expected{20, 29, 29, 1, 1}, Expected{30, 10, 10, 3, 1}}) {
    INFO(e.full_layers << " full, " << e.windowed_layers << " windowed");
    const LayerGroups groups = group_layers(e.full_layers, e.windowed_layers, 128);
    CHECK(groups.size == e.size);
    CHECK(groups.full == e.full);
    CHECK(groups.windowed == e.windowed);
    CHECK(groups.window == 128);
    CHECK(groups.layers == e.full_layers + e.windowed_layers);
  }
  CHECK(group_layers(10, 52, 1024).pool_blocks(100) == 620);
  CHECK(group_layers(10, 52, 1024).slot_share() == Approx(10.0 / 62));
}

TEST_CASE("without windows a sequence holds a block per block_size tokens") {
  const KvDemand demand(BlockSize(16), LayerGroups{});
  for (const std::int64_t tokens : {0, 1, 16, 17, 1'000'000}) {
    CHECK(demand.blocks(tokens) == (tokens + 15) / 16);
    CHECK(demand.slots(tokens) == tokens);
    CHECK(demand.growth(tokens) == 1);
  }
}

TEST_CASE("a windowed group holds as many blocks as its window ever touched") {
  for (const std::int64_t size : {1, 3, 4, 16}) {
    for (const std::int64_t window : {1, 2, 3, 4, 15, 16, 17, 33, 64}) {
      LayerGroups groups = group_layers(4, 8, window);
      const KvDemand demand(BlockSize(size), groups);
      std::int64_t most = 0;
      for (std::int64_t tokens = 1; tokens < 200; ++tokens) {
        INFO("block size " << size << ", window " << window << ", " << tokens << " tokens");
        const std::int64_t oldest = std::max<std::int64_t>(tokens - window, 0);
        most = std::max(most, (tokens - 1) / size - oldest / size + 1);
        const std::int64_t blocks = (tokens + size - 1) / size + 2 * most;
        CHECK(demand.blocks(tokens) == blocks);
        CHECK(demand.slots(tokens) == tokens + 2 * std::min(tokens, most * size));
        CHECK(demand.slots(tokens) <= blocks * size);
        // What the group of decoding sequences relies on: a token fills growth() slots, and at a
        // block's boundary takes as many blocks.
        const std::int64_t growth = demand.growth(tokens);
        CHECK(growth == (tokens < demand.edge() ? 3 : 1));
        CHECK(demand.slots(tokens + 1) == demand.slots(tokens) + growth);
        CHECK(demand.blocks(tokens + 1) - demand.blocks(tokens) ==
              (tokens % size == 0 ? growth : 0));
      }
      CHECK(demand.edge() % size == 0);
      CHECK(demand.edge() >= window);
    }
  }
}
