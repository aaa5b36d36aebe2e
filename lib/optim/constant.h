// A constant learning rate.
#pragma once

#include "optim/schedule.h"

namespace dtrain {

/// Returns a schedule with a constant rate, which is the default of the optimizers.
Configured<Schedule> constant_rate(double value);

}  // namespace dtrain
