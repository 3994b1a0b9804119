package main

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"keylane.test/harness"
)

// brokerFallbacks returns the values that a topic's retention.bytes falls back to, each with its
// source, joined.
func brokerFallbacks(t *T, admin *kadm.Client, topic string) string {
	configs, err := admin.DescribeTopicConfigs(t, topic)
	t.NoError(err, "describe configs")
	t.NoError(configs[0].Err, "describe configs")
	for _, config := range configs[0].Configs {
		if config.Key != "retention.bytes" {
			continue
		}
		var found []string
		for _, synonym := range config.Synonyms {
			found = append(found, fmt.Sprintf("%s@%d", *synonym.Value, synonym.Source))
		}
		return strings.Join(found, " ")
	}
	t.Fatalf("no retention.bytes")
	return ""
}

func checkBrokerLevels(t *T) {
	admin, topic := newAdmin(t), newTopic(t, "topic", 1)
	brokers, err := admin.ListBrokers(t)
	t.NoError(err, "list brokers")
	change := func(op kadm.IncrementalOp, value string, nodes ...int32) {
		config := kadm.AlterConfig{Op: op, Name: "log.retention.bytes"}
		if op == kadm.SetConfig {
			config.Value = &value
		}
		responses, err := admin.AlterBrokerConfigs(t, []kadm.AlterConfig{config}, nodes...)
		t.NoError(err, "alter configs")
		t.NoError(responses[0].Err, "alter configs")
	}
	becomes := func(expected string) {
		t.Eventually("retention.bytes falls back to "+expected, func() bool {
			return brokerFallbacks(t, admin, topic) == expected
		})
	}
	node := brokers[0].NodeID
	// Large enough to change nothing for other checks.
	change(kadm.SetConfig, "60000000002")
	becomes("60000000002@3 -1@5")
	change(kadm.SetConfig, "60000000001", node)
	becomes("60000000001@2 60000000002@3 -1@5")
	change(kadm.DeleteConfig, "")
	becomes("60000000001@2 -1@5")
	change(kadm.DeleteConfig, "", node)
	becomes("-1@5")
}

func checkGroupConfigs(t *T) {
	client := newClient(t)
	group := t.Unique("group")
	describe := func(name string) kmsg.DescribeConfigsResponseResource {
		request := kmsg.NewPtrDescribeConfigsRequest()
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, name
		request.Resources = append(request.Resources, resource)
		response, err := request.RequestWith(t, client)
		t.NoError(err, "describe configs")
		return response.Resources[0]
	}
	alter := func(name, key string) error {
		request := kmsg.NewPtrIncrementalAlterConfigsRequest()
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, name
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = key, kmsg.StringPtr("1")
		resource.Configs = append(resource.Configs, config)
		request.Resources = append(request.Resources, resource)
		response, err := request.RequestWith(t, client)
		t.NoError(err, "alter configs")
		return kerr.ErrorForCode(response.Resources[0].ErrorCode)
	}
	described := describe(group)
	harness.Equal(t, described.ErrorCode, 0, "of a group that is not there")
	t.True(len(described.Configs) > 0, "no configs")
	wantError(t, kerr.ErrorForCode(describe("").ErrorCode), kerr.InvalidRequest, "an empty name")
	wantError(t, alter(group, "no.such.config"), kerr.InvalidConfig, "an unknown config")
	wantError(t, alter("", "no.such.config"), kerr.InvalidRequest, "an empty name")
}
