package pve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// StorageStatus is a storage as one node sees it.
type StorageStatus struct {
	Storage proxmox.StorageID
	// Type is the plugin: dir, lvmthin, rbd and so on.
	Type string
	// Content lists what may be stored: images, iso, snippets and so on.
	Content []string
	// Active says that the storage works on the node, Enabled that it is not switched off.
	Shared, Active, Enabled bool
	Total, Used, Available  proxmox.Bytes
}

// Storages lists a node's storages.
func (c *Client) Storages(ctx context.Context, node proxmox.NodeName) ([]StorageStatus, error) {
	call, err := newCall(http.MethodGet, "/nodes/{node}/storage", string(node))
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	storages := make([]StorageStatus, len(list))
	for i, f := range list {
		storages[i] = StorageStatus{
			Storage: proxmox.StorageID(f["storage"]), Type: string(f["type"]), Content: f["content"].list(),
			Shared: f["shared"].flag(), Active: f["active"].flag(), Enabled: f["enabled"].flag(),
			Total: f["total"].bytes(), Used: f["used"].bytes(), Available: f["avail"].bytes(),
		}
	}
	return storages, nil
}

// Volume is an entry of a storage.
type Volume struct {
	ID proxmox.VolumeID
	// Content is images, iso and so on; Format raw, qcow2, iso and so on.
	Content, Format string
	Size, Used      proxmox.Bytes
	// VMID is the owner of a disk image, by its name.
	VMID    proxmox.VMID
	Created time.Time
	// Parent is the base of a linked clone's disk.
	Parent string
}

// StorageContent lists the volumes of a storage that hold one kind of content, such as iso; all if it is empty.
func (c *Client) StorageContent(
	ctx context.Context, node proxmox.NodeName, storage proxmox.StorageID, content string,
) ([]Volume, error) {
	call, err := newCall(http.MethodGet, "/nodes/{node}/storage/{storage}/content", string(node), string(storage))
	if err == nil {
		call.set("content", content)
	}
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	volumes := make([]Volume, len(list))
	for i, f := range list {
		volumes[i] = Volume{
			ID: proxmox.VolumeID(f["volid"]), Content: string(f["content"]), Format: string(f["format"]), Size: f["size"].bytes(),
			Used: f["used"].bytes(), VMID: f["vmid"].vmid(), Created: f["ctime"].time(), Parent: string(f["parent"]),
		}
	}
	return volumes, nil
}

// UploadRequest puts an ISO image onto a storage.
type UploadRequest struct {
	Node    proxmox.NodeName
	Storage proxmox.StorageID
	// Filename must end in .iso or .img. A volume of that name is overwritten.
	Filename string
	// Content should be a multiple of 2048 bytes long: guests hang on ejecting others.
	Content []byte
}

// UploadISO uploads the image and starts the task that checks it and puts it into place. It is never sent twice.
func (c *Client) UploadISO(ctx context.Context, request UploadRequest) (proxmox.UPID, error) {
	call, err := newCall(http.MethodPost, "/nodes/{node}/storage/{storage}/upload", string(request.Node), string(request.Storage))
	if err == nil && request.Filename == "" {
		err = call.refuse("no file name")
	}
	if err != nil {
		return "", c.inRegion(err)
	}
	sum := sha256.Sum256(request.Content)
	call.file = &fileSum{Name: request.Filename, Size: len(request.Content), SHA256: hex.EncodeToString(sum[:])}
	call.set("content", "iso").set("checksum-algorithm", "sha256").set("checksum", call.file.SHA256).set("filename", request.Filename)
	call.wantTask, call.timeout = true, c.options.UploadTimeout
	body, contentType, err := call.multipart(request.Content)
	if err != nil {
		return "", c.inRegion(call.refuse(err.Error()))
	}
	return task(c.post(ctx, call, contentType, body))
}

// multipart writes the form in the only order pveproxy accepts: the checksum after its algorithm, the file last
// (file_upload_multipart in PVE::APIServer::AnyEvent).
func (c *call) multipart(content []byte) (body []byte, contentType string, err error) {
	var buffer bytes.Buffer
	form := multipart.NewWriter(&buffer)
	for _, name := range []string{"content", "checksum-algorithm", "checksum"} {
		if err := form.WriteField(name, c.params.Get(name)); err != nil {
			return nil, "", err
		}
	}
	part, err := form.CreateFormFile("filename", c.file.Name)
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(content); err != nil {
		return nil, "", err
	}
	if err := form.Close(); err != nil {
		return nil, "", err
	}
	return buffer.Bytes(), form.FormDataContentType(), nil
}

// DeleteVolume removes a volume. The task identifier is empty if PVE was done at once. An absent volume is no error.
func (c *Client) DeleteVolume(ctx context.Context, node proxmox.NodeName, volume proxmox.VolumeID) (proxmox.UPID, error) {
	storage, _, _ := strings.Cut(string(volume), ":")
	call, err := newCall(http.MethodDelete, "/nodes/{node}/storage/{storage}/content/{volume}", string(node), storage, string(volume))
	return task(c.del(ctx, call, err))
}

// IsNoStorage says that a request was refused because Proxmox VE has no storage of that name: its configuration, which all
// nodes share, is without it.
func IsNoStorage(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == http.StatusInternalServerError &&
		textRule{pattern: "storage '*' does not exist"}.matches(refused.allText())
}
