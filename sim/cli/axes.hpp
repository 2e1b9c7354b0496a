/// The flags that describe a run. Each may take several values, and the runs are their product.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags.hpp"
#include "cli/run_spec.hpp"

namespace servesim {

/// One flag that a run is made of: a row of the table in axes.cpp.
struct Axis {
  enum class Scope {
    kTrace,   ///< how the trace is read
    kLoad,    ///< how its load is changed
    kEngine,  ///< the engine; these contradict --engine-config
  };
  enum class Kind {
    kValue,   ///< takes a value, or a list separated by commas
    kWhole,   ///< takes a value in which commas have a meaning of their own; may be given again
    kSwitch,  ///< --name or --no-name, or --name true,false
  };
  std::string name;
  Scope scope;
  Kind kind;
  std::string value_name;
  std::string help;
  std::function<void(RunSpec&, const std::string&)> set;
};

const std::vector<Axis>& axes();

/// Declares the axes of `scope`.
void add_axes(FlagSet& flags, Axis::Scope scope);

/// Declares the axes called `names`. Throws std::out_of_range for a name that is none.
void add_axes(FlagSet& flags, const std::vector<std::string>& names);

/// The entries of "a,b,c". Throws InputError, which names the flag, for an empty one.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

/// The values of one axis, as given.
struct AxisValues {
  const Axis* axis;
  std::vector<std::string> values;
};

/// The axes that were given, in the order of the table. Throws InputError for empty list entries,
/// for repeated values and for --x together with --no-x.
std::vector<AxisValues> given_axes(const FlagSet& flags);

/// `given` with more values for its first axis, the trace.
std::vector<AxisValues> join_traces(std::vector<AxisValues> given,
                                    const std::vector<std::string>& traces);

/// One run of the product, with the values of the axes that vary.
struct PlannedRun {
  RunSpec spec;
  std::vector<std::pair<std::string, std::string>> varied;
};

/// The product of `given`, the first axis varying slowest. Axes with one value are not `varied`,
/// nor are `trace` and `policy`, which every table shows.
std::vector<PlannedRun> product(const RunSpec& base, const std::vector<AxisValues>& given);

}  // namespace servesim
