// What is registered at PyTorch's dispatcher: kernels, the fallback to the CPU for all other operators, and what Python
// calls as torch.ops.refdev.*. It is one file because including torch/library.h costs five seconds.
#include "allocator.h"
#include "compat.h"
#include "device.h"
#include "faults.h"
#include "generator.h"
#include "kernels.h"
#include "on_host.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <map>
#include <mutex>

namespace refdev {
namespace {

std::mutex count_mutex;
std::map<std::string, int64_t> counts;

// The one device of an operator's tensors. A number in a CPU tensor may meet any device, and so may indices.
c10::Device common_device(const std::string& name, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> found;
  bool on_device = false;
  const auto look_at = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) {
      return;
    }
    TORCH_CHECK(
        !found || *found == tensor.device(),
        name, ": expected all tensors to be on the same device, found ", *found, " and ", tensor.device());
    found = tensor.device();
    on_device |= tensor.device().type() == kDeviceType;
  };
  for (const auto& argument : arguments) {
    if (argument.isTensor()) {
      look_at(argument.toTensor());
    } else if (argument.isTensorList()) {
      for (const auto& tensor : argument.toTensorList()) {
        look_at(tensor);
      }
    }
  }
  return on_device ? *found : c10::Device(kDeviceType, current_device);
}

// Lets CPU kernels that know only the CPU's default generator draw from the device's, and puts the CPU's back.
// A thread that draws CPU random numbers at the same moment can get in between: a device with kernels of its own for
// random numbers does not have this problem.
class BorrowedDefaultGenerator {
 public:
  explicit BorrowedDefaultGenerator(const at::Generator& generator)
      : cpu_(at::detail::getDefaultCPUGenerator()), lender_(cpu_generator_of(generator)), kept_(cpu_.get_state()) {
    cpu_.set_state(lender_.get_state());
  }

  ~BorrowedDefaultGenerator() {
    lender_.set_state(cpu_.get_state());
    cpu_.set_state(kept_);
  }

  BorrowedDefaultGenerator(const BorrowedDefaultGenerator&) = delete;
  BorrowedDefaultGenerator& operator=(const BorrowedDefaultGenerator&) = delete;

 private:
  at::Generator cpu_;
  at::Generator lender_;
  at::Tensor kept_;
};

// Hands the operator the CPU generator inside the device's. False if it takes no generator.
bool replace_generator(const c10::FunctionSchema& schema, torch::jit::Stack& stack, c10::Device device) {
  const auto& arguments = schema.arguments();
  const auto first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "generator") {
      auto& given = stack[first + i];
      given = cpu_generator_of(given.isNone() ? default_generator(device.index()) : given.toGenerator());
      return true;
    }
  }
  return false;
}

// Changes the first element of the first result, as a kernel with a mistake would.
void spoil(const torch::jit::Stack& stack, size_t results) {
  for (const auto& result : torch::jit::last(stack, results)) {
    if (result.isTensor() && result.toTensor().defined() && result.toTensor().numel() > 0) {
      auto element = on_host(result.toTensor()).as_strided({1}, {1});
      element.copy_(element.eq(0));
      return;
    }
  }
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto name = c10::toString(op.operator_name());
  const auto device = common_device(name, torch::jit::last(*stack, schema.arguments().size()));
  {
    const std::lock_guard<std::mutex> lock(count_mutex);
    ++counts[name];
  }
  faults::on_entry(name, device);
  std::optional<BorrowedDefaultGenerator> borrowed;
  if (!replace_generator(schema, *stack, device) && op.hasTag(at::Tag::nondeterministic_seeded)) {
    borrowed.emplace(default_generator(device.index()));
  }
  at::native::cpu_fallback(op, stack);
  if (faults::spoils(name)) {
    spoil(*stack, schema.returns().size());
  }
}

// PyTorch hands convolutions to out-of-tree backends under names of their own, and has no default for those.
c10::OperatorHandle plain(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void convolution(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static const auto op = plain("aten::convolution");
  run_on_cpu(op, stack);
}

void convolution_backward(const c10::OperatorHandle& overrideable, torch::jit::Stack* stack) {
  static const auto op = plain("aten::convolution_backward");
  // The same arguments, but for `bias_sizes`, which comes after grad_output, input and weight.
  const auto first = stack->size() - overrideable.schema().arguments().size();
  stack->insert(stack->begin() + first + 3, c10::IValue());
  run_on_cpu(op, stack);
}

c10::Dict<std::string, int64_t> fallback_counts() {
  const std::lock_guard<std::mutex> lock(count_mutex);
  c10::Dict<std::string, int64_t> copy;
  for (const auto& [name, count] : counts) {
    copy.insert(name, count);
  }
  return copy;
}

void reset_fallback_counts() {
  const std::lock_guard<std::mutex> lock(count_mutex);
  counts.clear();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_", TORCH_FN(set_to_nothing));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Storage", static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::native::set_));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("fill_.Scalar", TORCH_FN(fill_));
  m.impl("zero_", TORCH_FN(zero_));
  // A view is a new shape over the same memory, which PyTorch can make for any device. All other views end in these.
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY(refdev, m) {
  m.def("device_count() -> int", [] { return int64_t{kDeviceCount}; });
  m.def("current_device() -> int", [] { return int64_t{current_device}; });
  m.def("set_device(int device) -> ()", [](int64_t device) { current_device = device_index(device); });
  m.def("synchronize(int device) -> ()", [](int64_t device) { faults::require_healthy(device_index(device)); });
  m.def("default_generator(int device) -> Generator?", [](int64_t device) {
    return default_generator(device_index(device));
  });
  m.def("set_memory_limit(int device, int bytes) -> ()", [](int64_t device, int64_t bytes) {
    set_memory_limit(device_index(device), static_cast<size_t>(bytes));
  });
  m.def("fallback_counts() -> Dict(str, int)", &fallback_counts);
  m.def("reset_fallback_counts() -> ()", &reset_fallback_counts);
  m.def("faults() -> str[]", &faults::active);
}

} // namespace
} // namespace refdev
