// The table of verbs: a line per verb.
#include "cli/verbs.hpp"

namespace servesim {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kAll{
      {"", "replays traces; the default", simulate_flags, run_simulate},
      {"search", "the highest request rate under an SLO, and the best configuration", search_flags,
       run_search_verb},
      {"size", "will it fit: the HBM budget of deployments and of training", size_flags, run_size},
      {"list", "what can be named: policies, models, GPUs, formats", list_flags, run_list},
      {"generate", "writes a synthetic trace", generate_flags, run_generate},
      {"explain", "what one engine step costs, and why", explain_flags, run_explain},
      {"validate", "predictions against published measurements", validate_flags, run_validate},
      {"help", "help by topic; --man writes the manual page", help_flags, run_help},
      {"completion", "completion for bash or zsh", completion_flags, run_completion},
  };
  return kAll;
}

}  // namespace servesim
