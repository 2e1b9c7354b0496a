// Published transfers of KV caches between two servers (Mooncake's prefill/decode pages).
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cost/csv_rows.hpp"
#include "model/model_loader.hpp"
#include "net/flow_network.hpp"
#include "net/topology_loader.hpp"
#include "validation/sections.hpp"
#include "validation/statistics.hpp"

namespace servesim {
namespace {

/// One machine of the table. The numbers of its RDMA links are read off its smallest and its
/// largest transfer; the rows between are checked.
struct Machine {
  std::string setup;  ///< how the table's name of it begins
  std::string topology;
  std::string model;
  std::int64_t template_tokens;  ///< that the server puts around a prompt, as its KV sizes show
};

constexpr std::int64_t kRanks = 8;

/// The KV of `tokens` in whole blocks from each GPU of the first server to its peer in the second.
double transfer_ms(const Topology& topology, const ModelSpec& model, std::int64_t tokens) {
  constexpr std::int64_t kBlock = 16;
  const std::int64_t whole = (tokens + kBlock - 1) / kBlock * kBlock;
  const double bytes =
      model.kv_bytes_per_token_per_rank(KvFormat::k16Bit, kRanks) * static_cast<double>(whole);
  FlowNetwork network(topology);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    network.start(topology.prefill_gpus[rank], topology.decode_gpus[rank], bytes, rank, SimTime(0));
  }
  SimTime end;
  while (network.next_event() != SimTime::max()) {
    if (const auto done = network.take(network.next_event())) end = done->end;
  }
  return end.ms();
}

void check_machine(const CsvRows& csv, const Machine& machine, ValidationReport& report) {
  constexpr double kMost = 1e9;
  const std::size_t setup = csv.column("setup"), prompt = csv.column("prompt"),
                    measured_ms = csv.column("transfer_ms");
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv.text(i, setup).starts_with(machine.setup)) rows.push_back(i);
  }
  const Topology topology = load_topology(machine.topology);
  const ModelSpec model = load_model(machine.model);
  std::vector<double> errors;
  for (const std::size_t row : rows) {
    const auto tokens = static_cast<std::int64_t>(csv.number(row, prompt, 1, kMost));
    const double measured = csv.number(row, measured_ms, 1e-6, kMost);
    const double predicted = transfer_ms(topology, model, tokens + machine.template_tokens);
    report.compare("transfers", fmt::format("{} {} tokens", machine.topology, tokens),
                   "KV transfer (ms)", measured, predicted, std::nullopt);
    const bool read_off = row == rows.front() || row == rows.back();
    if (!read_off) errors.push_back(std::abs(predicted / measured - 1));
  }
  if (errors.empty()) return;
  report.summarise(
      "transfers",
      fmt::format("{}, {} rows that no number was read off", machine.topology, errors.size()),
      "KV transfer median |error|", percentile(errors, 50), 0.15);
}

}  // namespace

void check_transfers(const std::string& data_dir, ValidationReport& report) {
  const std::string path = data_dir + "/public_kv_transfer.csv";
  if (!std::filesystem::exists(path)) {
    report.skipped.push_back("transfers: " + path + " is not there");
    return;
  }
  const CsvRows csv(path);
  check_machine(csv, {"H800", "h800-roce-8nic", "qwen3-8b", 14}, report);
  check_machine(csv, {"H20", "h20-roce-4nic", "qwen3-235b-a22b", 0}, report);
}

}  // namespace servesim
