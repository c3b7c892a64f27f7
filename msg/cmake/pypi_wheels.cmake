# Makes the ROS 2 wheels of PyPI look like a ROS installation to CMake.
#
# Given as CMAKE_PROJECT_INCLUDE, so it runs at the end of project(). Not used on a
# machine with a ROS distribution.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The prefix of the wheels is where their ament index is. It is above the module search
# path, in the virtual environment or in pip's temporary build environment.
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c [=[
import pathlib
import sys

import ament_package

for folder in pathlib.Path(ament_package.__file__).parents:
    if (folder / "share" / "ament_index").is_dir():
        print(folder.as_posix())
        break
else:
    sys.exit("no share/ament_index above " + ament_package.__file__)
]=]
  OUTPUT_VARIABLE DELASSUS_WHEELS_PREFIX
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_VARIABLE wheels_error
  RESULT_VARIABLE wheels_result)
if(NOT wheels_result EQUAL 0)
  message(FATAL_ERROR
    "The ROS 2 wheels are not installed for ${Python3_EXECUTABLE}:\n${wheels_error}")
endif()
message(STATUS "ROS 2 wheels: ${DELASSUS_WHEELS_PREFIX}")

list(PREPEND CMAKE_PREFIX_PATH "${DELASSUS_WHEELS_PREFIX}")
# The generators look up their templates in the ament index at configure time. The wheels
# come first, should a ROS distribution be sourced as well.
set(ENV{AMENT_PREFIX_PATH} "${DELASSUS_WHEELS_PREFIX}:$ENV{AMENT_PREFIX_PATH}")

# Some imported targets name include folders of the machine that built the wheels, which
# CMake refuses because they do not exist here. The real ones are found anew by the
# generators.
function(delassus_drop_foreign_includes)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS imported)
    get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT includes)
      continue()
    endif()
    set(present)
    foreach(include IN LISTS includes)
      if(include MATCHES "\\$<" OR IS_DIRECTORY "${include}")
        list(APPEND present "${include}")
      endif()
    endforeach()
    set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${present}")
  endforeach()
endfunction()

# Deferred, so that it sees every target that the CMakeLists.txt has found.
cmake_language(DEFER CALL delassus_drop_foreign_includes)
