"""The data of the compiler: traces, programs and rules of inputs."""
