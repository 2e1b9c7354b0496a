#include "net/routes.hpp"

#include <algorithm>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <functional>
#include <limits>

namespace servesim {
namespace {

constexpr ArcId kNoArc = ~ArcId{0};

/// The links that a path of some width from some source may use.
struct Usable {
  const Topology::Graph* graph = nullptr;
  const std::vector<bool>* up = nullptr;
  VertexId from = 0;
  double width = 0;

  template <typename Edge>
  bool operator()(const Edge& edge) const {
    const Topology::Arc& arc = (*graph)[edge];
    const VertexId start = static_cast<VertexId>(boost::source(edge, *graph));
    return arc.bytes_per_s >= width && (*up)[link_of(arc.id)] &&
           (start == from || !is_endpoint((*graph)[start].kind));
  }
};

/// Notes by which arc each vertex is reached best.
struct ReachedBy : boost::dijkstra_visitor<> {
  explicit ReachedBy(std::vector<ArcId>& arcs) : arcs_(&arcs) {}
  template <typename Edge, typename Graph>
  void edge_relaxed(Edge edge, const Graph& graph) {
    (*arcs_)[boost::target(edge, graph)] = graph[edge].id;
  }
  std::vector<ArcId>* arcs_;
};

}  // namespace

Routes::Routes(const Topology& topology) : topology_(topology), up_(topology.links().size(), true) {
  for (const Link& link : topology.links()) widths_.push_back(link.bytes_per_s);
  std::sort(widths_.begin(), widths_.end(), std::greater<>());
  widths_.erase(std::unique(widths_.begin(), widths_.end()), widths_.end());
}

void Routes::set_up(LinkId link, bool up) {
  up_[link] = up;
  trees_.clear();
}

const Routes::Tree& Routes::tree(VertexId from, std::size_t width) {
  const std::uint64_t key = (static_cast<std::uint64_t>(from) << 32) | width;
  const auto [entry, added] = trees_.try_emplace(key);
  if (!added) return entry->second;
  Tree& arcs = entry->second;
  arcs.assign(topology_.vertices(), kNoArc);
  const Topology::Graph& graph = topology_.graph();
  const Usable usable{&graph, &up_, from, widths_[width]};
  const boost::filtered_graph<Topology::Graph, Usable> wide(graph, usable);
  std::vector<std::int64_t> distance(topology_.vertices());
  boost::dijkstra_shortest_paths(wide, from,
                                 boost::weight_map(boost::get(&Topology::Arc::weight, wide))
                                     .distance_map(boost::make_iterator_property_map(
                                         distance.begin(), boost::get(boost::vertex_index, wide)))
                                     .visitor(ReachedBy(arcs)));
  return arcs;
}

VertexId Routes::start_of(ArcId arc) const {
  const Link& link = topology_.links()[link_of(arc)];
  return arc % 2 == 0 ? link.a : link.b;
}

std::vector<Path> Routes::between(VertexId from, VertexId to) {
  std::vector<Path> paths;
  if (from == to) {
    paths.push_back({{}, SimTime(0), std::numeric_limits<double>::infinity()});
    return paths;
  }
  for (std::size_t width = 0; width < widths_.size(); ++width) {
    const Tree& reached_by = tree(from, width);
    if (reached_by[to] == kNoArc) continue;
    Path path;
    path.bytes_per_s = std::numeric_limits<double>::infinity();
    for (VertexId at = to; at != from; at = start_of(path.arcs.back())) {
      path.arcs.push_back(reached_by[at]);
      const Link& link = topology_.links()[link_of(reached_by[at])];
      path.latency += link.latency;
      path.bytes_per_s = std::min(path.bytes_per_s, link.bytes_per_s);
    }
    if (!paths.empty() && path.latency >= paths.back().latency) continue;
    std::reverse(path.arcs.begin(), path.arcs.end());
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace servesim
