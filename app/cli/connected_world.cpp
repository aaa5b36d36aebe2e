#include "cli/connected_world.h"

#include <chrono>
#include <string>

#include "cli/exit_codes.h"
#include "cli/process_end.h"

namespace dtrain {

namespace {

ControlChannel::Progress progress_of(const World& world) {
  const World::Position position = world.position();
  return {position.step, position.phase, position.waits};
}

/// Returns the error of another process that has failed; "" if none has failed. `transport_failed`: MPI has
/// reported an error, such as a lost connection. MPI may notice it before the control channel learns which
/// process has failed, so this function waits for the channel for up to half a second.
std::string failure_of_other(const ControlChannel& control, bool transport_failed) {
  const auto failure =
      transport_failed ? control.wait_for_failure(std::chrono::milliseconds(500)) : control.failure();
  return failure ? failure->message : "";
}

/// Adds the name, step and phase of this process to an error message. Returns the message unchanged if it is
/// about the failure of another process, because such a message already names that process.
std::string complete_error(ControlChannel& control, const std::string& message) {
  const auto failure = control.failure();
  return failure && failure->message == message ? message : control.complete_own_error(message);
}

}  // namespace

ConnectedWorld::ConnectedWorld(Processes& processes)
    : control_(processes.control()),
      world_(
          processes.transport(),
          {.abort = [this](
                        const std::string& why,
                        bool is_user_error) { control_.report_error(why, is_user_error ? kWrong : kFailed); },
           .set_peer_timeout =
               [this](double seconds) { control_.set_peer_timeout(std::chrono::duration<double>(seconds)); },
           .failure_of_other = [this](bool failed) { return failure_of_other(control_, failed); },
           .other_has_failed = [this] { return control_.has_failure(); },
           .set_hang_limit =
               [this](double seconds) { control_.set_hang_limit(std::chrono::duration<double>(seconds)); },
           .complete_error = [this](const std::string& message) { return complete_error(control_, message); },
           .end_process = [&processes](const std::string& why) { end_without_cleanup(processes, why); }}) {
  control_.set_progress_source([this] { return progress_of(world_); });
  control_.set_interrupt([this](const std::string& message) { world_.interrupt(message); });
}

ConnectedWorld::~ConnectedWorld() {
  control_.set_interrupt(nullptr);
  control_.set_progress_source(nullptr);
}

}  // namespace dtrain
