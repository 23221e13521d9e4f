// total(numbers): their sum, in the wide type of the first submodule, from the start value of the second.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <start.h>
#include <wide.h>

static PyObject* total(PyObject*, PyObject* numbers) {
  PyObject* iterator = PyObject_GetIter(numbers);
  if (iterator == nullptr) {
    return nullptr;
  }
  wide::number sum = start::value;
  while (PyObject* item = PyIter_Next(iterator)) {
    sum += PyLong_AsLongLong(item);
    Py_DECREF(item);
  }
  Py_DECREF(iterator);
  return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(sum);
}

static PyMethodDef methods[] = {{"total", total, METH_O, "The sum of whole numbers."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sum", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__sum() {
  return PyModule_Create(&module);
}
