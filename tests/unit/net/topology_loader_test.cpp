/// The shipped links and topologies, and what is refused.
#include "net/topology_loader.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "net/routes.hpp"
#include "support/catch.hpp"

using namespace servesim;
using nlohmann::json;

namespace {

json small() {
  return json::parse(R"({"source": "a test", "kind": "assumed",
    "vertices": [{"name": "gpu", "kind": "gpu", "count": 4}, {"name": "s", "kind": "switch", "count": 2}],
    "links": [{"from": "gpu*", "to": "s*", "link": "ib-ndr400"},
              {"from": "s0", "to": "s1", "link": "ib-ndr400"}]})");
}

std::string refusal(const json& document) {
  try {
    topology_from_json(document, "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every shipped link loads", "[net]") {
  const std::vector<std::string> names = link_names();
  CHECK(names.size() >= 10);
  for (const std::string& name : names) {
    INFO(name);
    const LinkSpec link = load_link(name);
    CHECK(link.bytes_per_s > 1e9);
    CHECK(link.latency < SimTime::from_ms(1));
  }
  CHECK(load_link("ib-ndr400").bytes_per_s == Approx(47e9));
  CHECK_FALSE(load_link("100gbe").per_gpu);
}

TEST_CASE("in every shipped topology any GPU reaches any other and the memory", "[net]") {
  const std::vector<std::string> names = topology_names();
  CHECK(names.size() >= 8);
  for (const std::string& name : names) {
    INFO(name);
    CHECK_FALSE(topology_description(name).empty());
    const Topology topology = load_topology(name);
    Routes routes(topology);
    const auto gpus = topology.of_kind(VertexKind::kGpu);
    for (const VertexId to : gpus) CHECK_FALSE(routes.between(gpus.front(), to).empty());
    const auto memory = topology.of_kind(VertexKind::kDram);
    CHECK_FALSE(routes.between(gpus.front(), memory.front()).empty());
  }
}

TEST_CASE("in a DGX, peers go over NVLink and other machines over the GPU's own NIC", "[net]") {
  const Topology topology = load_topology("2x-dgx-h100");
  Routes routes(topology);
  const Path near = routes.between(topology.vertex("node0/gpu0"), topology.vertex("node0/gpu7"))[0];
  CHECK(near.bytes_per_s == load_link("nvlink4").bytes_per_s);
  for (const char* gpu : {"gpu0", "gpu5"}) {
    const Path far = routes.between(topology.vertex(std::string("node0/") + gpu),
                                    topology.vertex(std::string("node1/") + gpu))[0];
    CHECK(far.bytes_per_s == load_link("ib-ndr400").bytes_per_s);
    REQUIRE(far.arcs.size() == 6);
    const std::string nic = "node0/nic" + std::string(1, gpu[3]) + "-fabric";
    CHECK(topology.links()[link_of(far.arcs[2])].name == nic);
  }
}

TEST_CASE("stars join evenly, in order", "[net]") {
  const Topology topology = topology_from_json(small(), "my.json");
  CHECK(topology.links().size() == 5);
  CHECK(topology.links()[0].name == "gpu0-s0");
  CHECK(topology.links()[1].name == "gpu1-s0");
  CHECK(topology.links()[3].name == "gpu3-s1");
}

TEST_CASE("a link as a fabric: a port each, the latency of one link", "[net]") {
  const Topology topology = star(load_link("ib-ndr400"), 3);
  const Path path = Routes(topology).between(0, 2).front();
  CHECK(path.latency == load_link("ib-ndr400").latency);
  CHECK(load_fabric("ib-ndr400").is_link);
  CHECK_FALSE(load_fabric("dgx-h100").is_link);
}

TEST_CASE("faults of a topology are named", "[net]") {
  json missing = small();
  missing["links"][1]["to"] = "s2";
  CHECK(says(refusal(missing), "my.json: unknown vertex 's2'; did you mean 's"));
  json nobody = small();
  nobody["links"][0]["from"] = "cpu*";
  CHECK(says(refusal(nobody), "no vertex is named cpu*"));
  json unknown = small();
  unknown["links"][0]["link"] = "ib-ndr40";
  CHECK(says(refusal(unknown), "'ib-ndr400'"));
  json huge = small();
  huge["vertices"][1]["count"] = 1'000'000;
  CHECK(says(refusal(huge), "more than 1000000 vertices"));
  json uneven = small();
  uneven["vertices"][1]["count"] = 3;
  CHECK(says(refusal(uneven), "evenly"));
  json twice = small();
  twice["vertices"].push_back({{"name", "s0"}, {"kind", "switch"}});
  CHECK(says(refusal(twice), "two vertices"));
  json itself = small();
  itself["links"][1]["to"] = "s0";
  CHECK(says(refusal(itself), "itself"));
  json kind = small();
  kind["vertices"][0]["kind"] = "tpu";
  CHECK(says(refusal(kind), "kind of vertex"));
  json key = small();
  key["edges"] = 1;
  CHECK(says(refusal(key), "edges"));
  json source = small();
  source.erase("source");
  CHECK(says(refusal(source), "source"));
  json pool = small();
  pool["prefill"] = {"s0"};
  CHECK(says(refusal(pool), "no GPU"));
  json shared = small();
  shared["prefill"] = shared["decode"] = {"gpu*"};
  CHECK(says(refusal(shared), "/decode: gpu0 is in /prefill too"));
  json star = small();
  star["vertices"][0]["name"] = "g*";
  CHECK(says(refusal(star), "/name: must not be empty"));
  CHECK(says(refusal(kind), "my.json: unknown kind"));
  json type = small();
  type["link_types"]["thin"] = {
      {"bandwidth", {{"bytes_per_s_per_direction", 0}, {"source", "x"}, {"kind", "assumed"}}},
      {"latency", {{"us", 1}, {"source", "x"}, {"kind", "assumed"}}}};
  CHECK(says(refusal(type), "bytes_per_s_per_direction"));
  CHECK_THROWS_AS(load_fabric("ib-ndr40"), InputError);
  CHECK_THROWS_AS(load_topology("/no/such.json"), InputError);
}
