#include "net/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr std::array<std::string_view, 8> kKindNames{"gpu",  "nvswitch", "pcie-switch", "nic",
                                                     "host", "dram",     "nvme",        "switch"};

}  // namespace

VertexKind parse_vertex_kind(std::string_view name) {
  const auto found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) {
    throw unknown_name("kind of vertex", name, {kKindNames.begin(), kKindNames.end()});
  }
  return static_cast<VertexKind>(found - kKindNames.begin());
}

bool is_endpoint(VertexKind kind) {
  return kind == VertexKind::kGpu || kind == VertexKind::kDram || kind == VertexKind::kNvme;
}

VertexId Topology::add_vertex(const std::string& name, VertexKind kind) {
  const auto id = static_cast<VertexId>(vertices());
  if (!names_.try_emplace(name, id).second) {
    throw InputError(fmt::format("two vertices are named '{}'", name));
  }
  boost::add_vertex(Vertex{name, kind}, graph_);
  return id;
}

LinkId Topology::add_link(VertexId a, VertexId b, const LinkSpec& spec) {
  const std::string name = fmt::format("{}-{}", name_of(a), name_of(b));
  if (!(spec.bytes_per_s > 0) || !std::isfinite(spec.bytes_per_s)) {
    throw InputError(fmt::format("link {}: the bandwidth must be above 0 bytes/s, not {}", name,
                                 spec.bytes_per_s));
  }
  if (spec.latency < SimTime(0)) {
    throw InputError(fmt::format("link {}: the latency must not be negative", name));
  }
  if (a == b) throw InputError(fmt::format("link {}: joins a vertex to itself", name));
  /// More links than any path has.
  constexpr std::int64_t kMostLinks = 1 << 20;
  const auto id = static_cast<LinkId>(links_.size());
  const std::int64_t weight = spec.latency.ns() * kMostLinks + 1;
  boost::add_edge(a, b, Arc{2 * id, spec.bytes_per_s, weight}, graph_);
  boost::add_edge(b, a, Arc{2 * id + 1, spec.bytes_per_s, weight}, graph_);
  links_.push_back({name, a, b, spec.bytes_per_s, spec.latency});
  return id;
}

VertexId Topology::vertex(const std::string& name) const {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  std::vector<std::string> known;
  for (VertexId v = 0; v < vertices(); ++v) known.push_back(name_of(v));
  throw unknown_name("vertex", name, known);
}

LinkId Topology::link(const std::string& name) const {
  std::vector<std::string> known;
  for (const Link& link : links_) {
    if (link.name == name) return static_cast<LinkId>(&link - links_.data());
    known.push_back(link.name);
  }
  throw unknown_name("link", name, known);
}

std::vector<VertexId> Topology::of_kind(VertexKind kind) const {
  std::vector<VertexId> found;
  for (VertexId v = 0; v < vertices(); ++v) {
    if (kind_of(v) == kind) found.push_back(v);
  }
  return found;
}

}  // namespace servesim
