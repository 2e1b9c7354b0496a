// Reading the machine, and saying what was read.
#include "environment.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace servesim::calibrate;

TEST_CASE("GPUs are known by their whole name", "[calibrate]") {
  CHECK(profile_for_device("NVIDIA H100 80GB HBM3") == "h100-sxm");
  CHECK(profile_for_device("NVIDIA H100 PCIe") == "h100-pcie");
  CHECK(profile_for_device("NVIDIA H200") == "h200-sxm");
  CHECK(profile_for_device("NVIDIA H20") == "h20");
  CHECK(profile_for_device("NVIDIA B200") == "b200");
  CHECK(profile_for_device("NVIDIA L40S") == "l40s");
  CHECK(profile_for_device("NVIDIA A100-SXM4-80GB") == "a100-sxm-80g");
  CHECK(profile_for_device("NVIDIA A100-SXM4-40GB") == "a100-sxm-40g");
  CHECK(profile_for_device("NVIDIA A100 80GB PCIe") == "a100-pcie");
  CHECK(profile_for_device("A100-SXM4-40GB") == "a100-sxm-40g");  // as older drivers say it
  CHECK(profile_for_device(" nvidia h200\n") == "h200-sxm");
}

TEST_CASE("a GPU whose name holds a known one is not taken for it", "[calibrate]") {
  for (const char* name : {"NVIDIA GH200 480GB",
                           "NVIDIA GH200 144G HBM3e",
                           "NVIDIA GB200",
                           "NVIDIA GB300",
                           "NVIDIA H200 NVL",
                           "NVIDIA H100 NVL",
                           "NVIDIA H100 64GB HBM2",
                           "NVIDIA H100 96GB HBM3",
                           "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                           "NVIDIA H20-3e",
                           "NVIDIA H800",
                           "NVIDIA A800-SXM4-80GB",
                           "NVIDIA A100-PCIE-40GB",
                           "NVIDIA A100X",
                           "NVIDIA A100-SXM-64GB",
                           "GRID A100-40C",
                           "NVIDIA L40S-48Q",
                           "NVIDIA L40",
                           "NVIDIA B300",
                           "NVIDIA GeForce RTX 4090",
                           "NVIDIA",
                           ""}) {
    INFO(name);
    CHECK(profile_for_device(name).empty());
  }
}

TEST_CASE("a profile's name says of which GPU it is, if its user kept it", "[calibrate]") {
  CHECK(gpu_of_profile("h100-sxm") == "h100-sxm");
  CHECK(gpu_of_profile("h100-sxm-measured") == "h100-sxm");
  CHECK(gpu_of_profile("h20-measured") == "h20");
  CHECK(gpu_of_profile("h200-sxm-measured") == "h200-sxm");
  CHECK(gpu_of_profile("a100-sxm-40g") == "a100-sxm-40g");
  CHECK(gpu_of_profile("h2000").empty());
  CHECK(gpu_of_profile("my-own-h100-sxm").empty());
  CHECK(gpu_of_profile("profile").empty());
}

TEST_CASE("only what slows a GPU is throttling", "[calibrate]") {
  CHECK(throttle_reasons(0).empty());
  CHECK(throttle_reasons(0x1 | 0x2 | 0x100).empty());
  CHECK(throttle_reasons(0x4) == std::vector<std::string>{"software power cap"});
  CHECK(throttle_reasons(0x8 | 0x40).size() == 2);
  CHECK(cuda_version_text(12080) == "12.8");
  CHECK(cuda_version_text(13000) == "13.0");
}

TEST_CASE("values of /proc files are found by their key", "[calibrate]") {
  const std::string text = "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\nmodel name\t: other\n";
  CHECK(proc_value(text, "model name") == "A CPU @ 3 GHz");
  CHECK(proc_value("MemTotal:       24000 kB\n", "MemTotal") == "24000 kB");
  CHECK(proc_value(text, "flags").empty());
}

TEST_CASE("an environment is valid JSON that leaves out what is unknown", "[calibrate]") {
  Environment e;
  e.backend = "cuda";
  e.device = "GPU \"quoted\"\t";
  e.memory_bytes = 85520809984.0;
  e.units = 132;
  e.compute_major = 9;
  e.mig = false;
  e.power_limit_w = 700;
  e.throttling = {"hardware slowdown"};
  const auto json = nlohmann::json::parse(to_json(e));
  CHECK(json["device"] == e.device);
  CHECK(json["memory_bytes"] == 85520809984.0);
  CHECK(json["compute_capability"] == "9.0");
  CHECK(json["mig"] == false);
  CHECK(json["throttling"].size() == 1);
  CHECK_FALSE(json.contains("ecc"));
  CHECK_FALSE(json.contains("driver"));
}

TEST_CASE("a machine in order gives no cause for doubt", "[calibrate]") {
  Environment e;
  e.backend = "cuda";
  CHECK(state_findings(e).empty());  // unknown is not wrong
  e.mig = false;
  e.utilisation = 0.05;
  e.other_processes = 0;
  e.power_limit_w = 699.5;
  e.default_power_limit_w = 700;
  CHECK(state_findings(e).empty());
}

TEST_CASE("each cause for doubt is stated, all of them if need be", "[calibrate]") {
  Environment e;
  e.backend = "cuda";
  e.mig = true;
  e.utilisation = 0.6;
  e.other_processes = 3;
  e.throttling = {"hardware slowdown", "software power cap"};
  e.power_limit_w = 400;
  e.default_power_limit_w = 700;
  CHECK(state_findings(e) ==
        std::vector<std::string>{"MIG is on: a slice of the GPU is measured, not the GPU",
                                 "busy GPU: 60 % utilised before anything was run",
                                 "busy GPU: other processes that use it: 3",
                                 "throttling: hardware slowdown", "throttling: software power cap",
                                 "power limit lowered to 400 W of 700 W"});
  // A limit above the default is none that slows.
  Environment raised;
  raised.backend = "cuda";
  raised.power_limit_w = 750;
  raised.default_power_limit_w = 700;
  CHECK(state_findings(raised).empty());
}
