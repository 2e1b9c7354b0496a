#include "cli/outputs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/inputs.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

namespace fs = std::filesystem;

/// Whether two paths lead to one file, be it a pipe or a file that is not there yet. Only /dev/null
/// may take several outputs.
bool same_file(const std::string& a, const std::string& b) {
  struct stat left {};
  struct stat right {};
  if (stat(a.c_str(), &left) == 0 && stat(b.c_str(), &right) == 0) {
    struct stat null {};
    const bool is_null =
        stat("/dev/null", &null) == 0 && left.st_rdev == null.st_rdev && S_ISCHR(left.st_mode);
    return left.st_dev == right.st_dev && left.st_ino == right.st_ino && !is_null;
  }
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

void check_spares(const std::string& flag, const std::string& path,
                  const std::vector<std::string>& inputs) {
  std::error_code error;
  for (const std::string& input : inputs) {
    if (fs::is_regular_file(input, error) && same_file(path, input)) {
      throw InputError(fmt::format("{} {} would overwrite an input", flag, path));
    }
  }
  if (is_shipped_data(path)) {
    throw InputError(fmt::format("{} {} would overwrite a file that ships", flag, path));
  }
}

}  // namespace

void check_distinct(const OutputPaths& outputs, const std::vector<std::string>& inputs) {
  check_distinct({{"--json", outputs.json},
                  {"--requests", outputs.requests},
                  {"--schedule-log", outputs.schedule_log},
                  {"--timeline", outputs.timeline},
                  {"--report", outputs.report}},
                 inputs);
}

void check_distinct(std::vector<std::pair<std::string, std::string>> outputs,
                    const std::vector<std::string>& inputs) {
  for (auto& [flag, path] : outputs) {
    if (path == "-" && (flag == "--json" || flag == "--output")) path = "/dev/stdout";
    if (path == "-") {
      throw InputError(fmt::format("{} -: a file is expected; only --json writes to stdout", flag));
    }
  }
  std::erase_if(outputs, [](const auto& output) { return output.second.empty(); });
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    const auto& [flag, path] = *output;
    for (auto other = outputs.begin(); other != output; ++other) {
      if (same_file(path, other->second)) {
        throw InputError(fmt::format("{} and {} both write {}", other->first, flag, path));
      }
    }
    check_spares(flag, path, inputs);
  }
}

void check_report_name(const std::string& path) {
  if (!path.empty() && !path.ends_with(".html")) {
    throw InputError(fmt::format("--report {}: the name must end in .html", path));
  }
}

Outputs::Outputs(const OutputPaths& paths, TimelineWindow window)
    : json_on_stdout_(paths.json == "-") {
  if (!paths.json.empty() && !json_on_stdout_) json_ = std::make_unique<AtomicFile>(paths.json);
  if (!paths.requests.empty()) requests_ = std::make_unique<RequestWriter>(paths.requests);
  if (!paths.schedule_log.empty()) {
    schedule_log_ = std::make_unique<AtomicFile>(paths.schedule_log);
  }
  if (!paths.timeline.empty()) {
    timeline_ = std::make_unique<TimelineWriter>(paths.timeline, window);
  }
  if (!paths.report.empty()) {
    check_report_name(paths.report);
    report_ = std::make_unique<AtomicFile>(paths.report);
  }
}

void Outputs::commit(const std::string& json, const std::string& report) {
  if (json_) json_->write(json);
  if (report_) report_->write(report);
  // All are whole on the disk before the first is put in place: a full disk leaves none.
  if (json_) json_->close();
  if (requests_) requests_->close();
  if (schedule_log_) schedule_log_->close();
  if (timeline_) timeline_->close();
  if (report_) report_->close();
  if (json_) json_->commit();
  if (requests_) requests_->commit();
  if (schedule_log_) schedule_log_->commit();
  if (timeline_) timeline_->commit();
  if (report_) report_->commit();
}

void write_stdout(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((!written || std::fflush(stdout) != 0) && errno != EPIPE) {
    throw InputError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  }
}

}  // namespace servesim
