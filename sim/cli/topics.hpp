/// What `simulate help TOPIC` says.
#pragma once

#include <string>
#include <vector>

namespace servesim {

struct Topic {
  std::string name;
  std::string summary;
  std::string text;                   ///< paragraphs, lines of at most 100 columns
  std::vector<std::string> examples;  ///< commands that run where workloads/ is
};

const std::vector<Topic>& topics();

}  // namespace servesim
