module groupload

go 1.22
