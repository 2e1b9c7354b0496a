/// Cheapest paths through a topology.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "net/topology.hpp"

namespace servesim {

/// A way from one vertex to another.
struct Path {
  std::vector<ArcId> arcs;  ///< in order; empty from a vertex to itself
  SimTime latency;          ///< of all links together
  double bytes_per_s = 0;   ///< of the narrowest link
};

/// Finds paths: a transfer of some bytes takes the one with the least latency + bytes / bandwidth,
/// the bandwidth being that of its narrowest link; of equal ones, the one with fewer links. Only a
/// path that is the fastest among those at least as wide can be that, so each width is one run of
/// Dijkstra's algorithm from a source, which gives the paths to every target and is kept.
class Routes {
 public:
  explicit Routes(const Topology& topology);

  /// The paths that some number of bytes would take, the widest first, each with less latency than
  /// the one before. Empty when there is none.
  std::vector<Path> between(VertexId from, VertexId to);

  /// Whether `link` may be used; all may at first.
  void set_up(LinkId link, bool up);
  bool is_up(LinkId link) const { return up_[link]; }

 private:
  /// The arc by which the shortest path from a source reaches each vertex; kNoArc: not at all.
  using Tree = std::vector<ArcId>;
  const Tree& tree(VertexId from, std::size_t width);
  VertexId start_of(ArcId arc) const;

  const Topology& topology_;
  std::vector<double> widths_;  ///< of the links, each once, the widest first
  std::vector<bool> up_;
  std::unordered_map<std::uint64_t, Tree> trees_;  ///< by source and width
};

}  // namespace servesim
