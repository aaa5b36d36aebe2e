// A constant learning rate.
#pragma once

#include "optim/schedule.h"

namespace dtrain {

/// Returns a constant schedule, for optimizers' defaults.
Configured<Schedule> constant_rate(double value);

}  // namespace dtrain
