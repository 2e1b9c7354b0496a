/// Links and topologies from models/link, models/topology and files of one's own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "net/topology.hpp"

namespace servesim {

/// The names of the files in models/link and models/topology, sorted.
std::vector<std::string> link_names();
std::vector<std::string> topology_names();

/// What a shipped topology says of itself.
std::string topology_description(const std::string& name);

/// A link by name or path. Throws InputError.
LinkSpec load_link(const std::string& name_or_path);
LinkSpec link_from_json(const nlohmann::json& document, const std::string& name,
                        const std::string& origin);

/// A topology by name or path; docs/cluster.md has the format. Throws InputError for vertices that
/// are not there, unknown links and everything else that is wrong with it.
Topology load_topology(const std::string& name_or_path);
Topology topology_from_json(const nlohmann::json& document, const std::string& origin);

/// Where `--kv-link` gets its transfers from: a topology, or a link, of which each GPU (or replica)
/// has a port to one switch that is never the bottleneck.
struct Fabric {
  bool is_link = false;
  LinkSpec link;      ///< when is_link
  Topology topology;  ///< else
  std::string file;   ///< it was read from
  std::string hash;   ///< canonical_hash() of what the file says
};
Fabric load_fabric(const std::string& name_or_path);

/// `ports` GPUs "gpu0", "gpu1", ... with a `link` each to one switch.
Topology star(const LinkSpec& link, std::size_t ports);

}  // namespace servesim
