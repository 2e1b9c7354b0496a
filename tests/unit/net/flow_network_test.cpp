/// Transfers against closed forms, and against a plain max-min solver on random networks.
#include "net/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/rng.hpp"
#include "net/topology_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

constexpr double kGb = 1e9;

LinkSpec wire(double bytes_per_s, std::int64_t latency_us) {
  return {"wire", bytes_per_s, SimTime::from_us(latency_us), true};
}

/// The end of each transfer, by tag.
std::map<std::uint64_t, SimTime> run_out(FlowNetwork& network) {
  std::map<std::uint64_t, SimTime> ends;
  while (network.next_event() != SimTime::max()) {
    if (const auto done = network.take(network.next_event())) ends[done->tag] = done->end;
  }
  return ends;
}

/// Two GPUs and the link between them.
struct Pair {
  Topology topology;
  VertexId a, b;
  explicit Pair(const LinkSpec& spec) {
    a = topology.add_vertex("a", VertexKind::kGpu);
    b = topology.add_vertex("b", VertexKind::kGpu);
    topology.add_link(a, b, spec);
  }
};

}  // namespace

TEST_CASE("one transfer takes latency + bytes / bandwidth", "[net]") {
  Pair pair(wire(10 * kGb, 7));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 3e6, 1, SimTime::from_ms(2));
  const auto ends = run_out(network);
  CHECK(ends.at(1) == SimTime::from_ms(2) + SimTime::from_us(7 + 300));
  const LinkStats stats = network.stats(SimTime::from_ms(10))[0];
  CHECK(stats.bytes == 3e6);
  CHECK(stats.busy == SimTime::from_us(300));
  CHECK(network.flows() == 0);
}

TEST_CASE("two transfers on one link take twice as long; the way back is another link", "[net]") {
  Pair pair(wire(10 * kGb, 7));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 3e6, 1, SimTime(0));
  network.start(pair.a, pair.b, 3e6, 2, SimTime(0));
  network.start(pair.b, pair.a, 3e6, 3, SimTime(0));
  const auto ends = run_out(network);
  CHECK(ends.at(1) == SimTime::from_us(7 + 600));
  CHECK(ends.at(2) == SimTime::from_us(7 + 600));
  CHECK(ends.at(3) == SimTime::from_us(7 + 300));
}

TEST_CASE("a transfer that joins half-way slows the first down, and gets the rest alone", "[net]") {
  Pair pair(wire(10 * kGb, 0));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 4e6, 1, SimTime(0));
  network.start(pair.a, pair.b, 4e6, 2, SimTime::from_us(200));
  const auto ends = run_out(network);
  CHECK(ends.at(1) == SimTime::from_us(600));  // 2 MB alone, 2 MB at half the rate
  CHECK(ends.at(2) == SimTime::from_us(800));  // 2 MB at half the rate, 2 MB alone
}

TEST_CASE("three flows over a shared and a private link, by hand", "[net]") {
  // A and B share a link of 10 GB/s; B goes on over one of 2 GB/s, which it shares with C.
  Topology topology;
  const VertexId left = topology.add_vertex("left", VertexKind::kGpu);
  const VertexId middle = topology.add_vertex("middle", VertexKind::kSwitch);
  const VertexId right = topology.add_vertex("right", VertexKind::kGpu);
  const VertexId down = topology.add_vertex("down", VertexKind::kGpu);
  const VertexId other = topology.add_vertex("other", VertexKind::kGpu);
  topology.add_link(left, middle, wire(10 * kGb, 0));
  topology.add_link(middle, right, wire(2 * kGb, 0));
  topology.add_link(middle, down, wire(100 * kGb, 0));
  topology.add_link(other, middle, wire(100 * kGb, 0));
  FlowNetwork network(topology);
  const auto a = network.start(left, down, 18e6, 1, SimTime(0));
  const auto b = network.start(left, right, 1e6, 2, SimTime(0));
  const auto c = network.start(other, right, 3e6, 3, SimTime(0));
  CHECK(network.rate_of(*a) == Approx(9 * kGb));
  CHECK(network.rate_of(*b) == Approx(1 * kGb));
  CHECK(network.rate_of(*c) == Approx(1 * kGb));
  const auto ends = run_out(network);
  CHECK(ends.at(2) == SimTime::from_ms(1));
  CHECK(ends.at(1) == SimTime::from_us(1900));  // 9 MB in the first ms, the rest at 10 GB/s
  CHECK(ends.at(3) == SimTime::from_ms(2));     // 1 MB in the first ms, the rest at 2 GB/s
}

TEST_CASE("flows of one path end in the order of what they have left", "[net]") {
  Pair pair(wire(1 * kGb, 5));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 3e3, 1, SimTime(0));
  network.start(pair.a, pair.b, 1e3, 2, SimTime(0));
  network.start(pair.a, pair.b, 0, 3, SimTime(0));
  network.start(pair.a, pair.a, 1e9, 4, SimTime(0));
  const auto ends = run_out(network);
  CHECK(ends.at(4) == SimTime(0));
  CHECK(ends.at(3) == SimTime::from_us(5));
  CHECK(ends.at(2) == SimTime::from_us(5 + 2));
  CHECK(ends.at(1) == SimTime::from_us(5 + 4));
}

TEST_CASE("a link that degrades slows its flows, one that goes down loses them", "[net]") {
  Pair pair(wire(10 * kGb, 0));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 4e6, 1, SimTime(0));
  CHECK(network.set_bandwidth(0, 0.25, SimTime::from_us(200)).empty());
  CHECK(network.next_event() == SimTime::from_us(200 + 800));
  network.start(pair.b, pair.a, 5e6, 2, SimTime::from_us(200));
  CHECK(network.set_bandwidth(0, 0, SimTime::from_us(300)) == std::vector<std::uint64_t>{1, 2});
  CHECK(network.next_event() == SimTime::max());
  CHECK_FALSE(network.start(pair.a, pair.b, 1, 3, SimTime::from_us(400)));
  network.set_bandwidth(0, 1, SimTime::from_us(500));
  CHECK(network.start(pair.a, pair.b, 1e6, 4, SimTime::from_us(500)));
  CHECK(run_out(network) == std::map<std::uint64_t, SimTime>{{4, SimTime::from_us(600)}});
}

TEST_CASE("a cancelled transfer leaves its bandwidth to the others", "[net]") {
  Pair pair(wire(10 * kGb, 1));
  FlowNetwork network(pair.topology);
  network.start(pair.a, pair.b, 3e6, 1, SimTime(0));
  const auto second = network.start(pair.a, pair.b, 3e6, 2, SimTime(0));
  network.cancel(*second, SimTime::from_us(200));
  CHECK(run_out(network) == std::map<std::uint64_t, SimTime>{{1, SimTime::from_us(401)}});
}

namespace {

/// Every flow, every link, every event: the rates from scratch each time.
class SlowNetwork {
 public:
  struct Flow {
    std::vector<ArcId> arcs;
    double left;
    double begin_s;
    double rate = 0;
    double end_s = -1;
  };

  SlowNetwork(const Topology& topology, std::vector<Flow> flows)
      : topology_(topology), flows_(std::move(flows)) {}

  const std::vector<Flow>& run() {
    double now = 0;
    while (true) {
      fill(now);
      double next = std::numeric_limits<double>::infinity();
      for (const Flow& flow : flows_) {
        if (flow.begin_s > now) next = std::min(next, flow.begin_s);
        if (active(flow, now)) next = std::min(next, now + flow.left / flow.rate);
      }
      if (std::isinf(next)) return flows_;
      for (Flow& flow : flows_) {
        if (!active(flow, now)) continue;
        flow.left -= flow.rate * (next - now);
        if (flow.left <= 1e-3) flow.end_s = next;
      }
      now = next;
    }
  }

 private:
  static bool active(const Flow& flow, double now) { return flow.begin_s <= now && flow.end_s < 0; }
  void fill(double now) {
    std::vector<double> left;
    for (const Link& link : topology_.links()) left.insert(left.end(), 2, link.bytes_per_s);
    std::vector<Flow*> open;
    for (Flow& flow : flows_) {
      if (active(flow, now)) open.push_back(&flow);
    }
    while (!open.empty()) {
      double least = std::numeric_limits<double>::infinity();
      ArcId where = 0;
      for (ArcId arc = 0; arc < left.size(); ++arc) {
        const auto uses = std::count_if(open.begin(), open.end(), [arc](const Flow* flow) {
          return std::count(flow->arcs.begin(), flow->arcs.end(), arc) > 0;
        });
        if (uses > 0 && left[arc] / static_cast<double>(uses) < least) {
          least = left[arc] / static_cast<double>(uses);
          where = arc;
        }
      }
      std::vector<Flow*> rest;
      std::vector<double> after = left;
      for (Flow* flow : open) {
        if (std::count(flow->arcs.begin(), flow->arcs.end(), where) == 0) {
          rest.push_back(flow);
          continue;
        }
        flow->rate = least;
        for (const ArcId arc : flow->arcs) after[arc] -= least;
      }
      left = after;
      open = rest;
    }
  }

  const Topology& topology_;
  std::vector<Flow> flows_;
};

/// A tree of switches with GPUs at its ends, whose links have a few widths.
Topology random_tree(Rng& rng) {
  Topology topology;
  std::vector<VertexId> switches{topology.add_vertex("s0", VertexKind::kSwitch)};
  const auto width = [&] { return static_cast<double>(1 + rng.below(4)) * kGb; };
  for (int i = 1; i < 4; ++i) {
    const VertexId parent = switches[rng.below(switches.size())];
    switches.push_back(topology.add_vertex("s" + std::to_string(i), VertexKind::kSwitch));
    topology.add_link(switches.back(), parent, wire(width(), 0));
  }
  for (int i = 0; i < 8; ++i) {
    const VertexId gpu = topology.add_vertex("g" + std::to_string(i), VertexKind::kGpu);
    topology.add_link(gpu, switches[rng.below(switches.size())], wire(width(), 0));
  }
  return topology;
}

}  // namespace

TEST_CASE("max-min fair rates equal those of a plain solver on random networks", "[net]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, "test.net");
    const Topology topology = random_tree(rng);
    const std::vector<VertexId> gpus = topology.of_kind(VertexKind::kGpu);
    Routes routes(topology);
    struct Start {
      VertexId from, to;
      double bytes;
      SimTime at;
    };
    std::vector<Start> starts;
    std::vector<SlowNetwork::Flow> slow;
    SimTime at;
    for (int i = 0; i < 40; ++i) {
      const VertexId from = gpus[rng.below(gpus.size())];
      const VertexId to = gpus[rng.below(gpus.size())];
      if (from == to) continue;
      at += SimTime::from_us(static_cast<std::int64_t>(rng.below(400)));
      const double bytes = static_cast<double>(1 + rng.below(1'000'000));
      starts.push_back({from, to, bytes, at});
      slow.push_back({routes.between(from, to).front().arcs, bytes, at.seconds()});
    }
    FlowNetwork network(topology);
    std::map<std::uint64_t, SimTime> ends;
    const auto take_until = [&](SimTime until) {
      while (network.next_event() <= until && network.next_event() != SimTime::max()) {
        if (const auto done = network.take(network.next_event())) ends[done->tag] = done->end;
      }
    };
    for (std::size_t i = 0; i < starts.size(); ++i) {
      take_until(starts[i].at);
      network.start(starts[i].from, starts[i].to, starts[i].bytes, i, starts[i].at);
    }
    take_until(SimTime(SimTime::max().ns() - 1));
    const auto expected = SlowNetwork(topology, slow).run();
    REQUIRE(ends.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("seed " << seed << ", flow " << i);
      CHECK(std::abs(ends.at(i).seconds() - expected[i].end_s) < 1e-7);  // rounded events add up
    }
  }
}
