/// The interconnect as a graph: GPUs, NICs, switches, hosts and disks joined by links.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/time.hpp"

namespace servesim {

/// What stands at a vertex. Transfers begin and end at GPUs, DRAM and disks, and never pass through
/// them.
enum class VertexKind : std::uint8_t {
  kGpu,
  kNvSwitch,
  kPcieSwitch,
  kNic,
  kHost,
  kDram,
  kNvme,
  kSwitch,  ///< of the Ethernet or InfiniBand fabric
};

/// "gpu", "nvswitch", "pcie-switch", "nic", "host", "dram", "nvme", "switch". Throws InputError for
/// anything else.
VertexKind parse_vertex_kind(std::string_view name);
bool is_endpoint(VertexKind kind);

using VertexId = std::uint32_t;
using LinkId = std::uint32_t;
/// One direction of a link: 2 * link, or 2 * link + 1 for the way back.
using ArcId = std::uint32_t;

constexpr LinkId link_of(ArcId arc) {
  return arc / 2;
}

/// A kind of link. Links are full duplex: each direction has the whole bandwidth.
struct LinkSpec {
  std::string name;
  double bytes_per_s = 0;  ///< that a transfer can reach in one direction; above 0
  SimTime latency;
  bool per_gpu = true;  ///< as a fabric of its own: a port for every GPU, else one per replica
};

struct Link {
  std::string name;  ///< "gpu0-nvswitch"
  VertexId a, b;
  double bytes_per_s;
  SimTime latency;
};

class Topology {
 public:
  struct Vertex {
    std::string name;
    VertexKind kind = VertexKind::kGpu;
  };
  struct Arc {
    ArcId id = 0;
    double bytes_per_s = 0;
    /// Latency in ns, then the number of links: what a shortest path minimises.
    std::int64_t weight = 0;
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Arc>;

  /// Throws InputError when the name is taken.
  VertexId add_vertex(const std::string& name, VertexKind kind);
  /// Joins two vertices. Throws InputError for a bandwidth that is not above 0, a negative latency
  /// or a link from a vertex to itself.
  LinkId add_link(VertexId a, VertexId b, const LinkSpec& spec);

  /// Throws InputError that suggests the nearest name.
  VertexId vertex(const std::string& name) const;
  const std::string& name_of(VertexId vertex) const { return graph_[vertex].name; }
  VertexKind kind_of(VertexId vertex) const { return graph_[vertex].kind; }
  std::size_t vertices() const { return boost::num_vertices(graph_); }
  /// All vertices of a kind, in the order in which they were added.
  std::vector<VertexId> of_kind(VertexKind kind) const;

  const std::vector<Link>& links() const { return links_; }
  /// Throws InputError that suggests the nearest name.
  LinkId link(const std::string& name) const;
  const Graph& graph() const { return graph_; }

  /// The GPUs that a file reserves for a pool; empty: none.
  std::vector<VertexId> prefill_gpus, decode_gpus;

 private:
  Graph graph_;
  std::vector<Link> links_;
  std::unordered_map<std::string, VertexId> names_;
};

}  // namespace servesim
