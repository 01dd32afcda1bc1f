from tests.run.conftest import dcplint as dcplint
