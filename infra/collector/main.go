// The OpenTelemetry Collector that EvalAgent runs beside an agent: the upstream components that
// config.yaml names, and no others. It listens for OTLP and writes OTLP/JSON files; nothing it holds
// can send data elsewhere.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// version is set by build.sh to that of the upstream modules.
var version = "dev"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "healthy" {
		os.Exit(healthy())
	}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command:     "evalagent-collector",
			Description: "OpenTelemetry Collector with the components that EvalAgent uses",
			Version:     version,
		},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				ProviderFactories: []confmap.ProviderFactory{
					fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory(),
				},
			},
		},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// healthy asks the health check of a collector in the same container, since an image without a shell
// has no curl to do it. Returns the exit code.
func healthy() int {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://127.0.0.1:13133/")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, answer.Status)
		return 1
	}
	return 0
}

func components() (otelcol.Factories, error) {
	var found otelcol.Factories
	var err error
	if found.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return found, err
	}
	if found.Processors, err = otelcol.MakeFactoryMap[processor.Factory](
		memorylimiterprocessor.NewFactory(),
		batchprocessor.NewFactory(),
		redactionprocessor.NewFactory(),
	); err != nil {
		return found, err
	}
	if found.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](
		fileexporter.NewFactory(),
		nopexporter.NewFactory(),
	); err != nil {
		return found, err
	}
	found.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](healthcheckextension.NewFactory())
	found.Telemetry = otelconftelemetry.NewFactory()
	return found, err
}
