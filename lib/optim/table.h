// Each function adds one type to its registry. registry.cpp calls all of them.
#pragma once

#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace dtrain {

void add_constant(Registry<Schedule>& table);
void add_piecewise_constant(Registry<Schedule>& table);
void add_exponential_decay(Registry<Schedule>& table);
void add_inverse_time_decay(Registry<Schedule>& table);
void add_cosine_decay(Registry<Schedule>& table);
void add_polynomial_decay(Registry<Schedule>& table);
void add_one_cycle(Registry<Schedule>& table);
void add_linear_warmup(Registry<Schedule>& table);
void add_reduce_on_plateau(Registry<Schedule>& table);

void add_sgd(Registry<Optimizer>& table);
void add_rmsprop(Registry<Optimizer>& table);
void add_adagrad(Registry<Optimizer>& table);
void add_adam(Registry<Optimizer>& table);
void add_adamw(Registry<Optimizer>& table);
void add_adamax(Registry<Optimizer>& table);
void add_nadam(Registry<Optimizer>& table);
void add_adadelta(Registry<Optimizer>& table);
void add_lion(Registry<Optimizer>& table);
void add_lamb(Registry<Optimizer>& table);
void add_adafactor(Registry<Optimizer>& table);

}  // namespace dtrain
