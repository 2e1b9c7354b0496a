// Does a shared cost model price as a fresh one does, and is it made once per key and thread?
#include "cost/shared_cost_model.hpp"
#include "cost/linear_cost_model.hpp"
#include "support/catch.hpp"

namespace servesim {

TEST_CASE("handles of one key share a model, those of another do not") {
  int made = 0;
  const auto maker = [&made](double base_us, const std::string& key) {
    return share_cost_model(
        [&made, base_us] {
          ++made;
          return std::make_unique<LinearCostModel>(base_us, 1.0);
        },
        key);
  };
  const auto first = maker(100, "test/a");
  const auto second = maker(200, "test/b");
  const auto a1 = first();
  const auto a2 = first();
  const auto b = second();
  CHECK(made == 2);
  StepShape shape;
  shape.decode_seqs = shape.decode_tokens = shape.sampled = 4;
  shape.decode_context = 40;
  LinearCostModel fresh(100, 1);
  CHECK(a1->price(shape, Heat{}).total == fresh.price(shape, Heat{}).total);
  CHECK(a2->price(shape, Heat{}).total == fresh.price(shape, Heat{}).total);
  CHECK(b->price(shape, Heat{}).total > fresh.price(shape, Heat{}).total);
  CHECK(a1->decode_step_is_constant() == fresh.decode_step_is_constant());
  Heat heat;
  Heat same;
  CHECK(a1->decode_step(4, 40, {}, heat).total == fresh.decode_step(4, 40, {}, same).total);
  for (int i = 0; i < 20; ++i) maker(1 + i, "test/many" + std::to_string(i))();
  const int before = made;
  CHECK(first()->price(shape, Heat{}).total == fresh.price(shape, Heat{}).total);
  CHECK(made == before + 1);  // it had been given up, and is made again
}

}  // namespace servesim
