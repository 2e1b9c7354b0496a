/// A search's result as JSON (schema servesim/search/v1, docs/search.md), CSV and text.
#pragma once

#include <string>

#include "report/text_table.hpp"
#include "study/search_result.hpp"

namespace servesim {

/// The document; `command` is left out when empty, as in exports, which are the same bytes for the
/// same search.
std::string search_json(const SearchResult& result, const std::string& command);
/// One row per configuration.
std::string search_csv(const SearchResult& result);
/// The best configurations and the Pareto front, for a terminal.
std::string search_table(const std::string& headline, const SearchResult& result,
                         const TextStyle& style);

}  // namespace servesim
