// The ways in which a run can end: the `outcome` of the last event in run.jsonl.
#pragma once

#include "base/json.h"
#include "config/codec.h"

namespace dtrain {

enum class Outcome {
  done,         ///< all configured epochs were trained
  stopped,      ///< a callback, such as early stopping, ended the run
  out_of_time,  ///< the run ended early to stay within `max_time`
  interrupted,  ///< a signal ended the run; it can be resumed
  failed,       ///< an error ended the run
};

template <>
inline const EnumNames<Outcome> names_of<Outcome> = {{Outcome::done, "done"},
                                                     {Outcome::stopped, "stopped"},
                                                     {Outcome::out_of_time, "out_of_time"},
                                                     {Outcome::interrupted, "interrupted"},
                                                     {Outcome::failed, "failed"}};

/// Returns the outcome's name in run.jsonl, such as "out_of_time".
const char* name_of(Outcome outcome);

/// Returns the outcome that an "end" event records. Events of dtrain 0.1 have no `outcome`; the outcome then
/// follows from `failed` and from the words of `how`.
Outcome outcome_of(const Json& end_event);

}  // namespace dtrain
