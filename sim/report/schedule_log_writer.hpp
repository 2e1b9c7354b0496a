/// Every decision of a scheduler as JSON lines (--schedule-log), one per step.
#pragma once

#include <string>
#include <vector>

#include "report/atomic_file.hpp"
#include "sched/schedule_log.hpp"

namespace servesim {

/// Writes the fields that docs/formats.md describes, requests under their ids. Times are in
/// microseconds, with decimals where they are not whole. `accepted` stands only in steps that had
/// drafts.
class ScheduleLogWriter : public ScheduleLog {
 public:
  /// `file` must outlive the writer.
  explicit ScheduleLogWriter(AtomicFile& file) : file_(file) {}

  void on_step(const LoggedStep& step) override;

  /// The requests' ids by ticket, to be filled by the simulation before a ticket is logged.
  std::vector<std::string>& names() { return names_; }

 private:
  const std::string& name(Ticket ticket);
  void add_ids(std::string_view key, const std::vector<Ticket>& tickets);
  void add_pairs(std::string_view key, const LoggedStep::Counts& counts);
  void add_counts(std::string_view key, const LoggedStep::Counts& counts);
  void add_time(std::string_view key, SimTime time);

  AtomicFile& file_;
  std::vector<std::string> names_;
  std::vector<std::string> quoted_;  // names_ as JSON strings, made when first needed
  std::string line_;
};

}  // namespace servesim
