/// Which way a transfer goes.
#include "net/routes.hpp"

#include "support/catch.hpp"

using namespace servesim;

namespace {

LinkSpec edge(double bytes_per_s, std::int64_t latency_us) {
  return {"edge", bytes_per_s, SimTime::from_us(latency_us), true};
}

}  // namespace

TEST_CASE("narrow and near, or wide and far: each is a path for some size", "[net]") {
  Topology topology;
  const VertexId a = topology.add_vertex("a", VertexKind::kGpu);
  const VertexId b = topology.add_vertex("b", VertexKind::kGpu);
  const VertexId far = topology.add_vertex("far", VertexKind::kSwitch);
  topology.add_link(a, b, edge(1e9, 1));
  topology.add_link(a, far, edge(50e9, 5));
  topology.add_link(far, b, edge(40e9, 5));
  Routes routes(topology);
  const std::vector<Path> paths = routes.between(a, b);
  REQUIRE(paths.size() == 2);
  CHECK(paths[0].bytes_per_s == 40e9);
  CHECK(paths[0].latency == SimTime::from_us(10));
  CHECK(paths[0].arcs.size() == 2);
  CHECK(paths[1].bytes_per_s == 1e9);
  CHECK(paths[1].latency == SimTime::from_us(1));
}

TEST_CASE("of equal paths the one with fewer links", "[net]") {
  Topology topology;
  const VertexId a = topology.add_vertex("a", VertexKind::kGpu);
  const VertexId b = topology.add_vertex("b", VertexKind::kGpu);
  const VertexId x = topology.add_vertex("x", VertexKind::kSwitch);
  const VertexId y = topology.add_vertex("y", VertexKind::kSwitch);
  topology.add_link(a, x, edge(1e9, 2));
  topology.add_link(x, y, edge(1e9, 0));
  topology.add_link(y, b, edge(1e9, 2));
  topology.add_link(x, b, edge(1e9, 2));
  CHECK(Routes(topology).between(a, b).front().arcs.size() == 2);
}

TEST_CASE("no path leads through a GPU, through memory or over a link that is down", "[net]") {
  Topology topology;
  const VertexId a = topology.add_vertex("a", VertexKind::kGpu);
  const VertexId between = topology.add_vertex("between", VertexKind::kGpu);
  const VertexId b = topology.add_vertex("b", VertexKind::kGpu);
  topology.add_link(a, between, edge(1e9, 0));
  const LinkId last = topology.add_link(between, b, edge(1e9, 0));
  Routes routes(topology);
  CHECK(routes.between(a, b).empty());
  CHECK(routes.between(between, b).size() == 1);
  routes.set_up(last, false);
  CHECK(routes.between(between, b).empty());
  routes.set_up(last, true);
  CHECK(routes.between(between, b).size() == 1);
}

TEST_CASE("loops do not matter", "[net]") {
  Topology topology;
  std::vector<VertexId> ring;
  for (int i = 0; i < 6; ++i) {
    ring.push_back(topology.add_vertex("s" + std::to_string(i), VertexKind::kSwitch));
    if (i > 0) topology.add_link(ring[static_cast<std::size_t>(i - 1)], ring.back(), edge(1e9, 1));
  }
  topology.add_link(ring.back(), ring.front(), edge(1e9, 1));
  topology.add_link(ring.front(), ring[1], edge(1e9, 1));  // and a second link beside the first
  CHECK(Routes(topology).between(ring[0], ring[4]).front().arcs.size() == 2);
  CHECK(Routes(topology).between(ring[0], ring[3]).front().arcs.size() == 3);
}
