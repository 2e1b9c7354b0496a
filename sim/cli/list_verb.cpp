#include <fmt/format.h>
#include <unistd.h>

#include "cli/named_lists.hpp"
#include "cli/outputs.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "net/topology_loader.hpp"
#include "registry/registries.hpp"
#include "workload/generate_spec.hpp"
#include "workload/trace_format.hpp"

namespace servesim {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

template <typename Factory>
Named entries_of(const Table<Factory>& table) {
  Named result;
  for (const auto& entry : table.entries()) result.emplace_back(entry.name, entry.sentence);
  return result;
}

std::string billions(std::int64_t count) {
  return fmt::format("{:.1f}B", static_cast<double>(count) * 1e-9);
}

Named models() {
  Named result;
  for (const std::string& name : model_names()) {
    const ModelSpec m = load_model(name);
    std::string text = billions(m.parameter_count()) + " parameters, ";
    if (m.moe) text += billions(m.active_parameters()) + " active, ";
    text += fmt::format("{} layers, {}, context {}", m.layers, m.attention_kind(), m.max_position);
    result.emplace_back(name, text);
  }
  return result;
}

Named gpus() {
  Named result;
  for (const std::string& name : hardware_names()) {
    const HardwareSpec h = load_hardware(name);
    result.emplace_back(name, fmt::format("{:.0f} GiB, {:.2f} TB/s, {:.0f} TFLOP/s bf16",
                                          h.memory_bytes / (1 << 30), h.hbm_bytes_per_s * 1e-12,
                                          h.bf16_flops * 1e-12));
  }
  return result;
}

Named formats() {
  Named result;
  for (const TraceFormat& format : trace_formats()) {
    result.emplace_back(format.name, format.description);
  }
  return result;
}

Named links() {
  Named result;
  for (const std::string& name : link_names()) {
    const LinkSpec link = load_link(name);
    result.emplace_back(name, fmt::format("{:.1f} GB/s a direction, {:.1f} us, a port per {}",
                                          link.bytes_per_s * 1e-9, link.latency.seconds() * 1e6,
                                          link.per_gpu ? "GPU" : "replica"));
  }
  return result;
}

Named topologies() {
  Named result;
  for (const std::string& name : topology_names()) {
    result.emplace_back(name, topology_description(name));
  }
  return result;
}

Named specs() {
  Named result;
  for (const std::string& name : spec_names()) {
    result.emplace_back(name, load_spec(name).description);
  }
  return result;
}

}  // namespace

std::vector<NamedList> named_lists(const Registries& registries) {
  return {
      {"policies", "--policy", [&registries] { return entries_of(registries.policies); }},
      {"allocators", "--kv", [&registries] { return entries_of(registries.allocators); }},
      {"evictions", "--eviction", [&registries] { return entries_of(registries.evictions); }},
      {"routers", "--router", [&registries] { return entries_of(registries.routers); }},
      {"step-times", "--step-time", [&registries] { return entries_of(registries.cost_models); }},
      {"models", "--model", models},
      {"hardware", "--hardware", gpus},
      {"links", "--kv-link", links},
      {"topologies", "--kv-link", topologies},
      {"formats", "--trace-format", formats},
      {"specs", "generate --spec", specs},
  };
}

FlagSet list_flags() {
  FlagSet flags("list", "Lists what can be named.");
  flags.usage(
      "[policies|allocators|evictions|routers|step-times|models|hardware|links|topologies|formats|"
      "specs]");
  return flags;
}

int run_list(const std::vector<std::string>& arguments, const std::string&) {
  Registries registries;
  register_builtins(registries);
  const std::vector<NamedList> all = named_lists(registries);
  std::string wanted;
  std::vector<std::string> rest = arguments;
  if (!rest.empty() && !rest[0].starts_with('-')) {
    wanted = rest[0];
    rest.erase(rest.begin());
  }
  FlagSet flags = list_flags();
  if (!flags.parse(rest)) {
    write_stdout(flags.help());
    return 0;
  }
  const TextStyle style = style_for(STDOUT_FILENO);
  std::string text;
  std::vector<std::string> names;
  for (const NamedList& kind : all) {
    names.push_back(kind.name);
    if (!wanted.empty() && wanted != kind.name) continue;
    const std::string title = fmt::format("{} ({})", kind.name, kind.flag);
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", paint(title, kBold, style));
    for (const auto& [name, sentence] : kind.entries()) {
      text += fmt::format("  {:<20} {}\n", name, sentence);
    }
  }
  if (text.empty()) throw unknown_name("kind", wanted, names);
  write_stdout(text);
  return 0;
}

}  // namespace servesim
