"""Tables of joint positions and of matrices, in files; Parquet needs the extra ``recordings``."""
