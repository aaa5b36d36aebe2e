// Each adds its kind; the tables name them all.
#pragma once

#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dtrain {

void add_constant(KindTable<Schedule>& table);
void add_piecewise_constant(KindTable<Schedule>& table);
void add_exponential_decay(KindTable<Schedule>& table);
void add_cosine_decay(KindTable<Schedule>& table);
void add_reduce_on_plateau(KindTable<Schedule>& table);

void add_sgd(KindTable<Optimizer>& table);
void add_rmsprop(KindTable<Optimizer>& table);
void add_adagrad(KindTable<Optimizer>& table);
void add_adam(KindTable<Optimizer>& table);
void add_adamw(KindTable<Optimizer>& table);

}  // namespace dtrain
