/// Transfers that share the links of a topology max-min fairly.
#pragma once

#include <boost/heap/d_ary_heap.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/event_queue.hpp"
#include "net/routes.hpp"
#include "net/topology.hpp"

namespace servesim {

using FlowId = std::uint32_t;

/// A transfer that has landed.
struct FlowDone {
  FlowId flow;
  std::uint64_t tag;  ///< the caller's
  double bytes;
  SimTime begin, end;
  std::span<const ArcId> path;  ///< what it crossed; valid as long as the network
};

/// What crossed a link, both ways together.
struct LinkStats {
  std::int64_t flows = 0;
  double bytes = 0;
  SimTime busy;                    ///< time in which at least one transfer was crossing it
  std::vector<float> transfer_ms;  ///< of each transfer that landed
};

/// Each transfer is a flow of bytes along the cheapest path at its start. Flows share each
/// direction of each link max-min fairly (progressive filling; Bertsekas and Gallager, Data
/// Networks, section 6.5.2); the last byte lands the path's latency after it was sent. A lone
/// transfer so takes latency + bytes / bandwidth.
///
/// Rates change only when a flow starts or ends, and only among flows that share links with it,
/// directly or through others. Flows of one path have the same rate: they are counted, not visited,
/// and end in the order of what each has left.
class FlowNetwork {
 public:
  explicit FlowNetwork(const Topology& topology);

  /// Starts a transfer. Empty when no path is up. REQUIRES: bytes >= 0, time does not run back.
  std::optional<FlowId> start(VertexId from, VertexId to, double bytes, std::uint64_t tag,
                              SimTime now);

  /// When take() is due; SimTime::max() while nothing moves.
  SimTime next_event() const { return events_.empty() ? SimTime::max() : events_.top().time; }
  /// The next transfer that has landed by `now`; empty when there is none.
  std::optional<FlowDone> take(SimTime now);

  /// Forgets a transfer that has not landed.
  void cancel(FlowId flow, SimTime now);
  /// Scales the bandwidth of a link, of which 0 takes it down. Returns the tags of the transfers
  /// that were on a link that goes down; they are gone.
  std::vector<std::uint64_t> set_bandwidth(LinkId link, double factor, SimTime now);

  /// The sums so far, for each link.
  std::vector<LinkStats> stats(SimTime now) const;
  bool is_live(FlowId flow) const { return flows_[flow].live; }
  std::size_t flows() const { return flows_.size() - unused_.size(); }
  /// Bytes per second of a flow that is being sent, else 0.
  double rate_of(FlowId flow) const;

 private:
  using RouteId = std::uint32_t;
  struct Due {
    double served;  ///< bytes of its route at which it is sent
    std::uint64_t sequence;
    FlowId flow;
    bool operator<(const Due& other) const {  // the heap's top is the largest: the first to end
      return served != other.served ? served > other.served : sequence > other.sequence;
    }
  };
  using DueHeap = boost::heap::d_ary_heap<Due, boost::heap::arity<4>, boost::heap::mutable_<true>>;
  struct Event {
    bool landing;
    std::uint32_t id;  ///< flow when landing, else route
  };
  using Events = EventQueue<Event>;

  struct Route {
    Path path;
    double rate = 0;    ///< of each of its flows
    double served = 0;  ///< bytes that a flow since the route's first has got
    SimTime updated;
    DueHeap flows;
    Events::Handle event;  ///< the next end; valid while it has flows
    std::uint64_t visit = 0;
    bool frozen = false;
  };
  struct ArcState {
    double bytes_per_s = 0;
    std::vector<RouteId> routes;  ///< that have flows
    std::uint64_t visit = 0;
    double left = 0;       ///< while rates are computed
    std::size_t open = 0;  ///< likewise: flows without a rate
  };
  struct LinkState {
    LinkStats stats;
    std::size_t routes = 0;  ///< that have flows, both ways
    SimTime busy_since;
  };
  struct Flow {
    std::uint64_t tag = 0;
    double bytes = 0;
    SimTime begin;
    RouteId route = 0;
    bool live = false;
    bool sent = false;
    DueHeap::handle_type due;  ///< until it is sent
    Events::Handle landing;    ///< from then on
  };

  const std::vector<RouteId>& routes_between(VertexId from, VertexId to);
  FlowId make_flow(double bytes, std::uint64_t tag, SimTime now);
  void drop(FlowId flow);
  void enter(RouteId route, SimTime now);
  void leave(RouteId route, SimTime now);
  void serve(Route& route, SimTime now) const;
  void rebalance(const std::vector<ArcId>& seeds, SimTime now);
  void collect(const std::vector<ArcId>& seeds);
  void fill();
  void schedule(Route& route, SimTime now);
  void finish_sending(RouteId route, SimTime now);

  Routes paths_;
  std::deque<Route> routes_;  ///< stays in place: handles point into its heaps
  std::unordered_map<std::uint64_t, std::vector<RouteId>> pairs_;
  std::vector<ArcState> arcs_;
  std::vector<LinkState> links_;
  std::vector<double> full_;  ///< bandwidths when nothing is degraded, by link
  std::vector<Flow> flows_;
  std::vector<FlowId> unused_;
  Events events_;
  std::uint64_t sequence_ = 0;
  std::uint64_t visits_ = 0;
  std::vector<ArcId> touched_arcs_;      ///< scratch
  std::vector<RouteId> touched_routes_;  ///< scratch
};

}  // namespace servesim
