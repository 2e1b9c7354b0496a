#include "net/topology_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/data_dir.hpp"
#include "core/hash.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostVertices = 1'000'000;
constexpr std::int64_t kMostNodes = 100'000;

fs::path folder(const std::string& kind) {
  return fs::path(data_dir()) / "models" / kind;
}

std::vector<std::string> names_in(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder(kind), ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The file that `name` stands for, or empty when it is neither shipped nor a path.
std::string file_of(const std::string& name, const std::vector<std::string>& kinds) {
  for (const std::string& kind : kinds) {
    if (is_one_of(name, names_in(kind))) return (folder(kind) / (name + ".json")).string();
  }
  std::error_code ignored;
  const bool is_path = fs::path(name).extension() == ".json" || fs::exists(name, ignored);
  return is_path ? name : std::string();
}

/// Checks that a block says where its numbers come from.
void check_source(Params& block) {
  if (block.required<std::string>("source").empty()) throw block.error("source", "is empty");
  const std::vector<std::string> kinds{"assumed", "datasheet", "fitted", "measured"};
  const auto kind = block.required<std::string>("kind");
  if (!is_one_of(kind, kinds)) throw block.error("kind", unknown_name("kind", kind, kinds).what());
}

LinkSpec read_link(Params p, const std::string& name) {
  LinkSpec link;
  link.name = name;
  Params bandwidth = p.child("bandwidth");
  check_source(bandwidth);
  link.bytes_per_s = bandwidth.required<double>("bytes_per_s_per_direction");
  if (!(link.bytes_per_s > 0 && link.bytes_per_s <= 1e19)) {
    throw bandwidth.error("bytes_per_s_per_direction", "must be above 0, up to 1e19");
  }
  bandwidth.finish();
  p.allow("efficiency");
  if (p.has("efficiency")) {
    Params efficiency = p.child("efficiency");
    check_source(efficiency);
    link.bytes_per_s *= efficiency.number("share", 0.01, 1);
    efficiency.finish();
  }
  Params latency = p.child("latency");
  check_source(latency);
  link.latency = SimTime::from_seconds(latency.number("us", 0, 1e9) * 1e-6);
  latency.finish();
  const auto port = p.optional<std::string>("port_of", "gpu");
  if (port != "gpu" && port != "replica") throw p.error("port_of", "accepted: gpu, replica");
  link.per_gpu = port == "gpu";
  p.optional<std::string>("description", "");
  p.finish();
  return link;
}

/// Builds a topology from its document.
class Builder {
 public:
  Builder(const nlohmann::json& document, std::string origin)
      : document_(document), origin_(std::move(origin)), root_(document, origin_) {}

  Topology build() {
    root_.optional<std::string>("description", "");
    check_source(root_);
    read_link_types();
    if (root_.has("node")) read_nodes();
    root_.allow("nodes");
    add_vertices(root_, document_, "");
    root_.allow("links");
    if (topology_.vertices() == 0) throw InputError(origin_ + ": the topology has no vertex");
    add_links(root_, document_, "");
    topology_.prefill_gpus = gpus("prefill");
    topology_.decode_gpus = gpus("decode");
    for (const VertexId gpu : topology_.prefill_gpus) {
      const auto& decode = topology_.decode_gpus;
      if (std::find(decode.begin(), decode.end(), gpu) == decode.end()) continue;
      throw root_.error("decode", topology_.name_of(gpu) + " is in /prefill too");
    }
    root_.finish();
    return std::move(topology_);
  }

 private:
  void read_link_types() {
    root_.allow("link_types");
    if (!root_.has("link_types")) return;
    Params types = root_.child("link_types");
    for (const auto& [name, type] : document_.at("link_types").items()) {
      types.allow(name);
      types_.emplace(name, read_link(types.child(name), name));
    }
  }

  /// The template of a node, as often as `nodes` says; names get "node0/" and so on in front.
  void read_nodes() {
    Params node = root_.child("node");
    const nlohmann::json& document = document_.at("node");
    const std::int64_t count = root_.has("nodes") ? root_.integer("nodes", 1, kMostNodes) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string prefix = fmt::format("node{}/", i);
      add_vertices(node, document, prefix);
      add_links(node, document, prefix);
    }
    node.finish();
  }

  void add_vertices(Params& owner, const nlohmann::json& document, const std::string& prefix) {
    owner.allow("vertices");
    if (!owner.has("vertices")) return;
    for (const nlohmann::json& entry : array(owner, document, "vertices")) {
      Params p(entry, origin_, "/vertices");
      const std::string name = prefix + p.required<std::string>("name");
      if (name.size() == prefix.size() || name.find('*') != std::string::npos) {
        throw p.error("name", "must not be empty, nor hold a *");
      }
      VertexKind kind{};
      const auto kind_name = p.required<std::string>("kind");
      located([&] { kind = parse_vertex_kind(kind_name); });
      p.allow("count");
      if (p.has("count")) {
        const std::int64_t count = p.integer("count", 1, kMostVertices);
        for (std::int64_t i = 0; i < count; ++i) add_vertex(fmt::format("{}{}", name, i), kind);
      } else {
        add_vertex(name, kind);
      }
      p.finish();
    }
  }

  void add_vertex(const std::string& name, VertexKind kind) {
    if (topology_.vertices() == static_cast<std::size_t>(kMostVertices)) {
      throw InputError(fmt::format("{}: more than {} vertices", origin_, kMostVertices));
    }
    located([&] { topology_.add_vertex(name, kind); });
  }

  /// Each entry joins all that `from` stands for with all that `to` stands for: one with each of
  /// the other side, or evenly in order.
  void add_links(Params& owner, const nlohmann::json& document, const std::string& prefix) {
    owner.allow("links");
    if (!owner.has("links")) return;
    for (const nlohmann::json& entry : array(owner, document, "links")) {
      Params p(entry, origin_, "/links");
      const std::string from_name = prefix + p.required<std::string>("from");
      const std::string to_name = prefix + p.required<std::string>("to");
      const LinkSpec& type = link_type(p.required<std::string>("link"));
      p.finish();
      const std::vector<VertexId> from = matching(from_name);
      const std::vector<VertexId> to = matching(to_name);
      const std::size_t most = std::max(from.size(), to.size());
      if (most % from.size() != 0 || most % to.size() != 0) {
        throw InputError(
            fmt::format("{}: /links: {} stands for {} vertices and {} for {}, which "
                        "cannot be joined evenly",
                        origin_, from_name, from.size(), to_name, to.size()));
      }
      for (std::size_t i = 0; i < most; ++i) {
        located([&] {
          topology_.add_link(from[i * from.size() / most], to[i * to.size() / most], type);
        });
      }
    }
  }

  const nlohmann::json& array(const Params& owner, const nlohmann::json& document,
                              const std::string& key) const {
    const nlohmann::json& list = document.at(key);
    if (!list.is_array()) throw owner.error(key, "must be a list");
    return list;
  }

  const LinkSpec& link_type(const std::string& name) {
    const auto found = types_.find(name);
    if (found != types_.end()) return found->second;
    if (!is_one_of(name, link_names())) {
      std::vector<std::string> known = link_names();
      for (const auto& [own, type] : types_) known.push_back(own);
      throw InputError(
          fmt::format("{}: /links: {}", origin_, unknown_name("link", name, known).what()));
    }
    return types_.emplace(name, load_link(name)).first->second;
  }

  /// The vertices that `pattern` names: * stands for any number.
  std::vector<VertexId> matching(const std::string& pattern) const {
    if (pattern.find('*') == std::string::npos) {
      VertexId vertex = 0;
      located([&] { vertex = topology_.vertex(pattern); });
      return {vertex};
    }
    std::vector<VertexId> found;
    for (VertexId v = 0; v < topology_.vertices(); ++v) {
      if (matches(pattern, topology_.name_of(v))) found.push_back(v);
    }
    if (found.empty()) {
      throw InputError(fmt::format("{}: no vertex is named {}", origin_, pattern));
    }
    return found;
  }

  static bool matches(std::string_view pattern, std::string_view name) {
    while (!pattern.empty() && pattern.front() != '*') {
      if (name.empty() || name.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    }
    if (pattern.empty()) return name.empty();
    std::size_t digits = 0;
    while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') ++digits;
    return digits > 0 && matches(pattern.substr(1), name.substr(digits));
  }

  std::vector<VertexId> gpus(const std::string& pool) {
    std::vector<VertexId> all;
    root_.allow(pool);
    if (!root_.has(pool)) return all;
    for (const nlohmann::json& entry : array(root_, document_, pool)) {
      if (!entry.is_string()) throw root_.error(pool, "must be a list of names of GPUs");
      for (const VertexId vertex : matching(entry.get<std::string>())) {
        if (topology_.kind_of(vertex) != VertexKind::kGpu) {
          throw root_.error(pool, topology_.name_of(vertex) + " is no GPU");
        }
        all.push_back(vertex);
      }
    }
    return all;
  }

  /// Names the file in the errors of `action`.
  template <typename Action>
  void located(Action action) const {
    try {
      action();
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", origin_, error.what()));
    }
  }

  const nlohmann::json& document_;
  std::string origin_;
  Params root_;
  std::map<std::string, LinkSpec> types_;
  Topology topology_;
};

}  // namespace

std::vector<std::string> link_names() {
  return names_in("link");
}

std::vector<std::string> topology_names() {
  return names_in("topology");
}

std::string topology_description(const std::string& name) {
  const nlohmann::json document = read_json_file((folder("topology") / (name + ".json")).string());
  return document.value("description", std::string());
}

LinkSpec link_from_json(const nlohmann::json& document, const std::string& name,
                        const std::string& origin) {
  return read_link(Params(document, origin), name);
}

LinkSpec load_link(const std::string& name_or_path) {
  const std::string file = file_of(name_or_path, {"link"});
  if (file.empty()) throw unknown_name("link", name_or_path, link_names());
  return link_from_json(read_json_file(file), fs::path(file).stem().string(), file);
}

Topology topology_from_json(const nlohmann::json& document, const std::string& origin) {
  return Builder(document, origin).build();
}

Topology load_topology(const std::string& name_or_path) {
  const std::string file = file_of(name_or_path, {"topology"});
  if (file.empty()) throw unknown_name("topology", name_or_path, topology_names());
  return topology_from_json(read_json_file(file), file);
}

Fabric load_fabric(const std::string& name_or_path) {
  Fabric fabric;
  fabric.file = file_of(name_or_path, {"link", "topology"});
  if (fabric.file.empty()) {
    std::vector<std::string> known = link_names();
    for (std::string& name : topology_names()) known.push_back(std::move(name));
    throw unknown_name("link or topology", name_or_path, known);
  }
  const nlohmann::json document = read_json_file(fabric.file);
  fabric.hash = canonical_hash(document);
  const auto has = [&document](const char* key) { return document.contains(key); };
  fabric.is_link = document.is_object() &&
                   (has("bandwidth") || !(has("vertices") || has("node") || has("links")));
  if (fabric.is_link) {
    fabric.link = link_from_json(document, fs::path(fabric.file).stem().string(), fabric.file);
  } else {
    fabric.topology = topology_from_json(document, fabric.file);
  }
  return fabric;
}

Topology star(const LinkSpec& link, std::size_t ports) {
  Topology topology;
  for (std::size_t i = 0; i < ports; ++i) {
    topology.add_vertex(fmt::format("gpu{}", i), VertexKind::kGpu);
  }
  const VertexId hub = topology.add_vertex(link.name, VertexKind::kSwitch);
  // A path crosses two ports, and has the latency of one link.
  LinkSpec port = link;
  port.latency = SimTime(link.latency.ns() / 2);
  for (std::size_t i = 0; i < ports; ++i) {
    topology.add_link(static_cast<VertexId>(i), hub, port);
  }
  return topology;
}

}  // namespace servesim
