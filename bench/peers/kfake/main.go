// kfake, franz-go's fake cluster, as a program: it listens on the ports named and waits to be ended.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	var ports []int
	for _, word := range os.Args[1:] {
		port, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		ports = append(ports, port)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(len(ports)), kfake.Ports(ports...))
	if err != nil {
		panic(err)
	}
	fmt.Println("ready", strings.Join(cluster.ListenAddrs(), ","))
	select {}
}
