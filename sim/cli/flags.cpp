#include "cli/flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <memory>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr std::size_t kColumn = 44;  ///< in which help texts begin

/// CLI11's own help, but for the usage where a verb takes words.
struct Formatter : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return usage.empty() ? CLI::Formatter::make_usage(app, std::move(name))
                         : fmt::format("Usage: {} {}\n", app->get_name(), usage);
  }
  std::string usage;
};

/// A CLI11 parser over the declared flags; raw results go to `slots`.
struct Parser {
  Parser(const std::string& description, const std::string& name) : app(description, name) {
    app.allow_extras();
    app.set_help_flag("-h,--help", "Show this help");
  }
  CLI::App app;
  std::deque<std::vector<std::string>> slots;
  std::deque<bool> switches;
};

void declare(Parser& parser, const Flag& flag, const std::string& group) {
  const std::string name = "--" + flag.name;
  CLI::Option* option = nullptr;
  if (flag.arity == Arity::kNone) {
    option = parser.app.add_flag(name, parser.switches.emplace_back(false), flag.help);
  } else {
    option = parser.app.add_option(name, parser.slots.emplace_back(), flag.help);
    option->type_name(flag.value_name);
    option->allow_extra_args(false);
    if (flag.arity == Arity::kOptional) option->expected(0, 1);
    if (flag.arity == Arity::kMany) option->expected(1, 64);
    if (flag.arity == Arity::kOne || flag.arity == Arity::kEach) option->expected(1);
    if (flag.arity == Arity::kMany) option->allow_extra_args(true);
  }
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option->group(group);
}

[[noreturn]] void refuse_extra(const std::string& argument, const std::vector<std::string>& known) {
  if (argument.size() > 1 && argument[0] == '-') {
    const std::string name = argument.substr(0, argument.find('='));
    const std::string near = nearest_name(name, known);
    throw InputError(
        fmt::format("unknown flag '{}'{}", name.substr(0, 100),
                    near.empty() ? "; see --help" : fmt::format("; did you mean '{}'?", near)));
  }
  throw InputError(fmt::format("argument '{}' belongs to no flag; traces are given with --trace",
                               argument.substr(0, 100)));
}

}  // namespace

FlagSet::FlagSet(std::string verb, std::string description)
    : verb_(std::move(verb)), description_(std::move(description)) {}

void FlagSet::add(Flag flag) {
  declared_.push_back({std::move(flag), group_});
}

bool FlagSet::parse(const std::vector<std::string>& arguments) {
  Parser parser(description_, "simulate");
  for (const Declared& declared : declared_) declare(parser, declared.flag, declared.group);
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--") && argument.ends_with('=')) {
      throw InputError(fmt::format("{} needs a value", argument.substr(0, argument.size() - 1)));
    }
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser.app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    throw InputError(fmt::format("{} needs a value", message.substr(0, message.find(':'))));
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  std::vector<std::string> known{"--help"};
  for (const Declared& declared : declared_) known.push_back("--" + declared.flag.name);
  for (const Declared& declared : declared_) {
    const Flag& flag = declared.flag;
    const CLI::Option* option = parser.app.get_option("--" + flag.name);
    if (option->count() == 0) continue;
    const bool once = flag.arity == Arity::kOne || flag.arity == Arity::kNone;
    if (once && option->count() > 1) {
      throw InputError(fmt::format("--{} is given {} times", flag.name, option->count()));
    }
    given_.insert(flag.name);
    for (const std::string& value : option->results()) {
      if (flag.arity == Arity::kNone) {
        if (value != "true") throw InputError(fmt::format("--{} takes no value", flag.name));
        continue;
      }
      const bool needs_value = flag.arity != Arity::kOptional;
      if (needs_value && (value.empty() || value.starts_with("--"))) {
        throw InputError(fmt::format("--{} needs a value", flag.name));
      }
      values_[flag.name].push_back(value);
    }
  }
  if (const auto extras = parser.app.remaining(); !extras.empty()) refuse_extra(extras[0], known);
  return true;
}

std::string FlagSet::help() const {
  Parser parser(description_, verb_.empty() ? "simulate" : "simulate " + verb_);
  for (const Declared& declared : declared_) declare(parser, declared.flag, declared.group);
  parser.app.footer(footer_);
  auto formatter = std::make_shared<Formatter>();
  formatter->usage = usage_;
  formatter->column_width(kColumn);
  parser.app.formatter(formatter);
  return parser.app.help();
}

const std::vector<std::string>& FlagSet::values(const std::string& name) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

std::string FlagSet::value(const std::string& name, std::string_view fallback) const {
  const std::vector<std::string>& all = values(name);
  return all.empty() ? std::string(fallback) : all.front();
}

}  // namespace servesim
