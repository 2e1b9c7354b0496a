#include "kv/layer_groups.hpp"

namespace servesim {

LayerGroups group_layers(std::int64_t full_layers, std::int64_t windowed_layers,
                         std::int64_t window) {
  LayerGroups groups;
  groups.layers = full_layers + windowed_layers;
  groups.window = window;
  const std::int64_t rarer = std::min(full_layers, windowed_layers);
  const std::int64_t other = std::max(full_layers, windowed_layers);
  groups.size = rarer == 0 || 2 * other < 3 * rarer ? other : rarer;
  groups.full = (full_layers + groups.size - 1) / groups.size;
  groups.windowed = (windowed_layers + groups.size - 1) / groups.size;
  return groups;
}

}  // namespace servesim
